package main

import (
	"bytes"
	"embed"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // Registers the format.
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // Registers the format.
)

//go:embed files/muster.service
var unit []byte

//go:embed files/server.properties
var properties []byte

// scripts tell systemd what changed.
//
//go:embed files/postinstall.sh files/preremove.sh files/postremove.sh
var scripts embed.FS

// installed says where a package puts the texts of a release.
var installed = map[string]string{
	"LICENSE":                 "/usr/share/doc/muster/copyright",
	"README.md":               "/usr/share/doc/muster/README.md",
	"muster.1":                "/usr/share/man/man1/muster.1.gz",
	"completions/muster.bash": "/usr/share/bash-completion/completions/muster",
	"completions/_muster":     "/usr/share/zsh/vendor-completions/_muster",
	"completions/muster.fish": "/usr/share/fish/vendor_completions.d/muster.fish",
	"grafana/muster.json":     "/usr/share/muster/grafana/muster.json",
	"grafana/alerts.yml":      "/usr/share/muster/grafana/alerts.yml",
}

// systemPackages makes the packages for Debian and for Fedora. They start nothing: what is
// installed listens nowhere until someone enables the service.
func (r *release) systemPackages(t *target) (err error) {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var contents files.Contents
	add := func(destination string, text []byte, mode os.FileMode, kind string) error {
		source := filepath.Join(folder, strings.ReplaceAll(destination, "/", "_"))
		contents = append(contents, &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time},
		})
		return os.WriteFile(source, text, mode)
	}
	failed := []error{
		add("/usr/bin/muster", t.program, 0o755, files.TypeFile),
		add("/usr/lib/systemd/system/muster.service", unit, 0o644, files.TypeFile),
		add("/etc/muster/server.properties", properties, 0o644, files.TypeConfigNoReplace),
		add("/usr/share/doc/muster/muster.cdx.json", t.sbom, 0o644, files.TypeFile),
	}
	for _, f := range sorted(r.texts) {
		text := f.text
		if path.Ext(installed[f.name]) == ".gz" {
			if text, err = gzipped(text); err != nil {
				return err
			}
		}
		failed = append(failed, add(installed[f.name], text, 0o644, files.TypeFile))
	}
	run := nfpm.Scripts{PostInstall: "postinstall.sh", PreRemove: "preremove.sh", PostRemove: "postremove.sh"}
	for _, name := range []*string{&run.PostInstall, &run.PreRemove, &run.PostRemove} {
		text, err := scripts.ReadFile("files/" + *name)
		*name = filepath.Join(folder, *name)
		failed = append(failed, err, os.WriteFile(*name, text, 0o755))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.systemPackage(t, format, contents, run); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) systemPackage(t *target, format string, contents files.Contents, run nfpm.Scripts) error {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "muster", Arch: t.arch, Platform: "linux", Version: r.plain(), Section: "database", Priority: "optional",
		Maintainer: "muster maintainers", License: "Apache-2.0", MTime: r.time,
		Description: "Kafka-compatible broker in one binary\nKafka clients work with it unchanged. It keeps topics in files, or in Redis Streams.",
		Overridables: nfpm.Overridables{
			Contents: contents, Scripts: run,
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: "Kafka-compatible broker in one binary"},
		},
	})
	// WithDefaults and what it prepares write to the info, which is of one format.
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return r.write(r.base(t)+"."+format, out.Bytes())
}
