package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// formula makes muster.rb, which Homebrew installs an archive by, on macOS and Linux. There is
// none unless all four archives are there.
func (r *release) formula(built []*target) error {
	archives := map[string]string{}
	for _, t := range built {
		if t.os == "windows" {
			continue
		}
		name := r.base(t) + ".tar.gz"
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		archives[t.os+"/"+t.arch] = fmt.Sprintf("      url \"%s/%s/%s\"\n      sha256 \"%x\"\n", downloads, r.version, name, sha256.Sum256(text))
	}
	if len(archives) < 4 {
		return nil
	}
	return r.write("homebrew/muster.rb", []byte(strings.NewReplacer(
		"HOMEPAGE", homepage, "VERSION", r.plain(),
		"DARWIN_ARM64\n", archives["darwin/arm64"], "DARWIN_AMD64\n", archives["darwin/amd64"],
		"LINUX_ARM64\n", archives["linux/arm64"], "LINUX_AMD64\n", archives["linux/amd64"],
	).Replace(formulaText)))
}

const formulaText = `class Muster < Formula
  desc "Kafka-compatible broker in one binary"
  homepage "HOMEPAGE"
  version "VERSION"
  license "Apache-2.0"

  on_macos do
    on_arm do
DARWIN_ARM64
    end
    on_intel do
DARWIN_AMD64
    end
  end

  on_linux do
    on_arm do
LINUX_ARM64
    end
    on_intel do
LINUX_AMD64
    end
  end

  def install
    bin.install "muster"
    man1.install "muster.1"
    bash_completion.install "completions/muster.bash" => "muster"
    zsh_completion.install "completions/_muster"
    fish_completion.install "completions/muster.fish"
    pkgshare.install "grafana"
  end

  service do
    run [opt_bin/"muster", "serve", "--data", var/"muster"]
    keep_alive successful_exit: false
    working_dir var
    log_path var/"log/muster.log"
    error_log_path var/"log/muster.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/muster version")
    port = free_port
    fork { exec bin/"muster", "serve", "--store", "mem", "--http", "off", "--listen", "127.0.0.1:#{port}" }
    system bin/"muster", "topics", "create", "orders", "--broker", "127.0.0.1:#{port}", "--wait", "30s"
  end
end
`
