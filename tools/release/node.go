package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// nodeNames are Node.js' names of systems and processors.
var nodeNames = map[string]string{"windows": "win32", "amd64": "x64"}

func nodeName(name string) string {
	if other, ok := nodeNames[name]; ok {
		return other
	}
	return name
}

// nodePackage is the package.json of a package that has only the program.
type nodePackage struct {
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	Description     string   `json:"description"`
	License         string   `json:"license"`
	OS              []string `json:"os"`
	CPU             []string `json:"cpu"`
	PreferUnplugged bool     `json:"preferUnplugged"` // Yarn must not keep it zipped.
}

// nodeBinary makes the npm package with the program for a target, which muster-broker depends
// on if the machine is such a one.
func (r *release) nodeBinary(t *target) error {
	system, cpu := nodeName(t.os), nodeName(t.arch)
	p := nodePackage{
		Name: "@muster-broker/" + system + "-" + cpu, Version: r.plain(), License: "Apache-2.0",
		Description: "The program of muster-broker for " + system + " on " + cpu, OS: []string{system}, CPU: []string{cpu}, PreferUnplugged: true,
	}
	about, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	text, err := tgz([]file{
		{name: "package/package.json", text: append(about, '\n')},
		{name: "package/bin/muster" + t.suffix(), text: t.program, mode: 0o755},
		{name: "package/LICENSE", text: license},
		{name: "package/muster.cdx.json", text: t.sbom},
	}, r.time)
	return errors.Join(err, r.write("node/muster-broker-"+system+"-"+cpu+"-"+r.plain()+".tgz", text))
}

// nodeMain makes muster-broker itself, which is the same on all machines.
func (r *release) nodeMain() error {
	source := filepath.Join(r.root, "packages", "node")
	files, err := folder(source, "package/", ".cjs", ".mjs", ".d.ts", ".d.mts", ".json", "README.md")
	if err != nil {
		return err
	}
	for i := range files {
		if files[i].name == "package/package.json" { // It says 0.0.0 for itself and for what it depends on.
			files[i].text = []byte(strings.ReplaceAll(string(files[i].text), `"0.0.0"`, `"`+r.plain()+`"`))
		}
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	text, err := tgz(append(files, file{name: "package/LICENSE", text: license}), r.time)
	return errors.Join(err, r.write("node/muster-broker-"+r.plain()+".tgz", text))
}
