package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// bom is a software bill of materials in the form of CycloneDX 1.6, as far as we have it.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    bomMetadata `json:"metadata"`
	Components  []component `json:"components"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom lists what the go command has put into a program: the modules, and Go itself.
func (r *release) sbom(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	self := component{Type: "application", Name: "muster", Version: r.version}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			self.Properties = append(self.Properties, property{"vcs.revision", s.Value})
		}
	}
	if len(self.Properties) == 0 {
		fmt.Fprintln(os.Stderr, "release: the program does not know its revision; Go stamps it in a clone, and not in a worktree beside one")
	}
	b := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: bomMetadata{r.time.Format(time.RFC3339), self}}
	b.Components = append(b.Components, goModule("std", strings.TrimPrefix(info.GoVersion, "go")))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, goModule(m.Path, m.Version))
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func goModule(path, version string) component {
	return component{Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
}
