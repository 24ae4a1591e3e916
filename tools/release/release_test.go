package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// published makes the results of a release whose programs are a few bytes.
func published(t *testing.T, version string) *release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: root, out: t.TempDir(), version: version, time: time.Unix(1_700_000_000, 0).UTC(), classes: []file{{name: "muster/junit/Broker.class", text: []byte("class")}}}
	for name := range installed {
		r.texts = append(r.texts, file{name: name, text: []byte(name)})
	}
	var all []*target
	for _, name := range strings.Fields(allTargets) {
		system, arch, _ := strings.Cut(name, "/")
		x := &target{os: system, arch: arch, program: []byte("program for " + name), sbom: []byte("{}\n")}
		all = append(all, x)
		if err := r.publish(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.publishAll(all); err != nil {
		t.Fatal(err)
	}
	return r
}

// results are the files of a release.
func results(t *testing.T, r *release) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(r.out, path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	one, two := results(t, published(t, "v0.1.0")), results(t, published(t, "v0.1.0"))
	if !maps.Equal(one, two) {
		for name := range one {
			if one[name] != two[name] {
				t.Errorf("%s differs", name)
			}
		}
	}
	for _, name := range []string{
		"muster_0.1.0_linux_amd64.tar.gz", "muster_0.1.0_darwin_arm64.tar.gz", "muster_0.1.0_windows_arm64.zip",
		"muster_0.1.0_linux_amd64.deb", "muster_0.1.0_linux_arm64.rpm", "muster_0.1.0_linux_amd64.cdx.json", "image/index.json",
		"python/muster_broker-0.1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		"node/muster-broker-0.1.0.tgz", "node/muster-broker-win32-x64-0.1.0.tgz", "homebrew/muster.rb",
		"jvm/muster/muster-junit/0.1.0/muster-junit-0.1.0.jar", "jvm/muster/muster-junit/0.1.0/muster-junit-0.1.0-sources.jar",
	} {
		if one[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if !strings.Contains(one["muster_0.1.0_linux_amd64.rpm"], "localhost") {
		t.Error("the package for Fedora names the machine that it was built on")
	}
	sums := one["SHA256SUMS"]
	if lines := strings.Count(sums, "\n"); lines != len(one)-1 {
		t.Errorf("%d checksums of %d files", lines, len(one)-1)
	}
	for name, text := range one {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name); name != "SHA256SUMS" && !strings.Contains(sums, line) {
			t.Errorf("no checksum of %s", name)
		}
	}
}

// untar reads a compressed archive: texts, with modes before them, by name.
func untar(t *testing.T, compressed string) map[string]string {
	t.Helper()
	text, err := gzip.NewReader(strings.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(text); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = fmt.Sprintf("%o %d %s", h.Mode, h.Uid, content)
	}
}

func TestArchivesHaveOneFolderWithTheProgram(t *testing.T) {
	all := results(t, published(t, "v0.1.0"))
	in := untar(t, all["muster_0.1.0_darwin_arm64.tar.gz"])
	if got := in["muster_0.1.0_darwin_arm64/muster"]; got != "755 0 program for darwin/arm64" {
		t.Errorf("the program is %q", got)
	}
	for name := range in {
		if !strings.HasPrefix(name, "muster_0.1.0_darwin_arm64/") {
			t.Errorf("%s is outside of the folder", name)
		}
	}
	zipped := all["muster_0.1.0_windows_amd64.zip"]
	z, err := zip.NewReader(strings.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Open("muster_0.1.0_windows_amd64/muster.exe"); err != nil {
		t.Error(err)
	}
}

// The image is followed from its index, as those do who pull it.
func TestTheImageHoldsTogether(t *testing.T) {
	all := results(t, published(t, "v0.1.0"))
	read := func(d descriptor, into any) string {
		t.Helper()
		text, ok := all["image/blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !ok || len(text) != d.Size || digest([]byte(text)) != d.Digest {
			t.Fatalf("%+v is not what is there", d)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	var outer, inner index
	if err := json.Unmarshal([]byte(all["image/index.json"]), &outer); err != nil {
		t.Fatal(err)
	}
	read(outer.Manifests[0], &inner)
	if len(inner.Manifests) != 2 {
		t.Fatalf("the image is for %d processors", len(inner.Manifests))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		var m manifest
		var c imageConfig
		read(inner.Manifests[i], &m)
		read(m.Config, &c)
		if inner.Manifests[i].Platform.Architecture != arch || c.Architecture != arch || c.OS != "linux" {
			t.Errorf("%+v is for %+v", inner.Manifests[i], c.platform)
		}
		layer := read(m.Layers[0], nil)
		unpacked, err := gzip.NewReader(strings.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil || c.RootFS.DiffIDs[0] != digest(text) {
			t.Errorf("the layer is not the one of the configuration: %v", err)
		}
		in := untar(t, layer)
		if got := in["usr/bin/muster"]; got != "755 0 program for linux/"+arch {
			t.Errorf("the program is %q", got)
		}
		if got := in["var/lib/muster/"]; got != fmt.Sprintf("700 %d ", user) {
			t.Errorf("the data folder is %q", got)
		}
		if n := strings.Count(in["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); n < 100 {
			t.Errorf("%d certificates", n)
		}
	}
}

func TestWheelsHaveARecordOfTheirFiles(t *testing.T) {
	for name, text := range results(t, published(t, "v0.1.0-rc.2")) {
		if !strings.HasSuffix(name, ".whl") {
			continue
		}
		z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		files := map[string]string{}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = string(content)
			sum := sha256.Sum256(content)
			want = append(want, fmt.Sprintf("%s,sha256=%s,%d", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content)))
			if program := strings.HasPrefix(f.Name, "muster/bin/"); program != (f.Mode()&0o111 != 0) {
				t.Errorf("%s: the mode of %s is %s", name, f.Name, f.Mode())
			}
		}
		const info = "muster_broker-0.1.0rc2.dist-info/"
		want[len(want)-1] = info + "RECORD,,"
		if got := strings.Split(strings.TrimSpace(files[info+"RECORD"]), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s: the record is %q, want %q", name, got, want)
		}
		if !strings.Contains(files[info+"METADATA"], "\nVersion: 0.1.0rc2\n") {
			t.Errorf("%s: %s", name, files[info+"METADATA"])
		}
	}
}

func TestNodePackagesDependOnTheirOwnVersion(t *testing.T) {
	all := results(t, published(t, "v0.1.0"))
	var p struct {
		Version              string
		OptionalDependencies map[string]string
	}
	in := untar(t, all["node/muster-broker-0.1.0.tgz"])
	if err := json.Unmarshal([]byte(strings.TrimPrefix(in["package/package.json"], "644 0 ")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Version != "0.1.0" || len(p.OptionalDependencies) != len(strings.Fields(allTargets)) {
		t.Errorf("the package is %+v", p)
	}
	for name, version := range p.OptionalDependencies {
		tarball := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
		if version != "0.1.0" || all["node/"+tarball+"-0.1.0.tgz"] == "" {
			t.Errorf("it depends on %s %s, which there is not", name, version)
		}
	}
}

func TestOnlyVersionsAreReleased(t *testing.T) {
	for version, ok := range map[string]bool{"v0.1.0": true, "v1.2.3-rc.1": true, "0.1.0": false, "v1": false, "v1.2.3-beta.0": true, "v1.2.3-RC": false, "v1.2.3-new": false, "v1.2.3 -X": false} {
		if versions.MatchString(version) != ok {
			t.Errorf("%s: %t", version, !ok)
		}
	}
}

func TestTheManualShowsHelpAsItIs(t *testing.T) {
	if got := roff("a-b\\c\n.d\n'e\nf"); got != "a\\-b\\ec\n\\&.d\n\\&'e\nf" {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	script := filepath.Join(t.TempDir(), "muster")
	text := "#!/bin/sh\nif [ \"$1\" = topics ]; then echo 'About topics.'; else printf 'A broker.\\n\\nAvailable Commands:\\n  help        Help\\n  topics      List\\n\\nFlags:\\n'; fi\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := describeCommand(t.Context(), &out, script, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, ".SH ") != 2 || !strings.Contains(got, ".SH MUSTER TOPICS\n.nf\nAbout topics.\n.fi\n") {
		t.Errorf("%s", got)
	}
}

// unzipped reads an archive, by the names of its files.
func unzipped(t *testing.T, text string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(content)
	}
	return out
}

func TestJarsHaveTheProgramsThatTheMainOneDependsOn(t *testing.T) {
	all := results(t, published(t, "v0.1.0"))
	pom := all["jvm/muster/muster-junit/0.1.0/muster-junit-0.1.0.pom"]
	for platform, classifier := range mavenClassifiers {
		in := unzipped(t, all["jvm/muster/muster-binary/0.1.0/muster-binary-0.1.0-"+classifier+".jar"])
		name := "muster/binary/" + classifier + "/muster"
		if strings.HasPrefix(platform, "windows") {
			name += ".exe"
		}
		if in[name] != "program for "+platform || in[name+".sha256"] != fmt.Sprintf("%x", sha256.Sum256([]byte(in[name]))) {
			t.Errorf("the jar for %s has %q", classifier, in)
		}
		if got, want := strings.Contains(pom, "<classifier>"+classifier+"</classifier>"), slices.Contains(mavenDefaults, classifier); got != want {
			t.Errorf("muster-junit depends on %s: %t", classifier, got)
		}
	}
	in := unzipped(t, all["jvm/muster/muster-junit/0.1.0/muster-junit-0.1.0.jar"])
	if in["muster/junit/Broker.class"] != "class" || !strings.Contains(in["META-INF/MANIFEST.MF"], "Implementation-Version: 0.1.0\n") {
		t.Errorf("muster-junit has %q", in)
	}
	sources := unzipped(t, all["jvm/muster/muster-junit/0.1.0/muster-junit-0.1.0-sources.jar"])
	if sources["muster/junit/Broker.java"] == "" {
		t.Error("the sources are not there")
	}
}

func TestTheFormulaNamesTheArchives(t *testing.T) {
	all := results(t, published(t, "v0.1.0"))
	formula := all["homebrew/muster.rb"]
	for _, name := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"} {
		name = "muster_0.1.0_" + name + ".tar.gz"
		want := fmt.Sprintf("      url \"%s/v0.1.0/%s\"\n      sha256 \"%x\"\n", downloads, name, sha256.Sum256([]byte(all[name])))
		if !strings.Contains(formula, want) {
			t.Errorf("the formula does not have\n%s", want)
		}
	}
	for _, blank := range []string{"DARWIN", "LINUX", "VERSION", "HOMEPAGE"} {
		if strings.Contains(formula, blank) {
			t.Errorf("%s is still in the formula", blank)
		}
	}
}
