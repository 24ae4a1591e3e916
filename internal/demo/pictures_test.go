package demo

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The pictures of docs/console.md are made of a demo that has run for ten minutes:
//
//	muster demo
//	go test ./internal/demo -run Pictures -pictures ../../docs/img -console http://127.0.0.1:9021
var (
	pictures = flag.String("pictures", "", "a folder to write the pictures of the documents to")
	console  = flag.String("console", "http://"+DefaultHTTP, "the console of a demo that runs")
)

func TestPicturesOfTheDocuments(t *testing.T) {
	if *pictures == "" {
		t.Skip("no pictures are wanted")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1240, 900))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // Chromium has none for root.
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ name, path, until string }{
		{"console-groups", "/groups", "document.querySelectorAll('main tbody tr').length > 5"},
		{"console-group", "/groups/warehouse", "document.querySelector('main table')"},
	} {
		if err := chromedp.Do(ctx, chromedp.Navigate(*console+p.path)); err != nil {
			t.Fatal(err)
		}
		if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](p.until, chromedp.WithPollingTimeout(patience))); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		<-time.After(2 * time.Second) // Sparklines and charts are drawn.
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*pictures, p.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
