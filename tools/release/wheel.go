package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wheelPlatforms are Python's names of targets. The program is static, so one wheel does for
// all Linux systems of a processor, whatever their C library is.
var wheelPlatforms = map[string][]string{
	"linux/amd64":   {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"},
	"linux/arm64":   {"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"},
	"darwin/amd64":  {"macosx_12_0_x86_64"},
	"darwin/arm64":  {"macosx_12_0_arm64"},
	"windows/amd64": {"win_amd64"},
	"windows/arm64": {"win_arm64"},
}

// pythonVersion is the version as PEP 440 writes it: 0.1.0rc1 for v0.1.0-rc.1.
func (r *release) pythonVersion() string {
	return strings.NewReplacer("-rc.", "rc", "-beta.", "b", "-alpha.", "a").Replace(r.plain())
}

// wheel makes the Python package for a target: packages/python, with the program in it.
func (r *release) wheel(t *target) error {
	platforms, ok := wheelPlatforms[t.os+"/"+t.arch]
	if !ok {
		return nil
	}
	source := filepath.Join(r.root, "packages", "python")
	files, err := folder(filepath.Join(source, "muster"), "muster/", ".py", ".typed")
	if err != nil {
		return err
	}
	metadata, err := os.ReadFile(filepath.Join(source, "METADATA"))
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(source, "README.md"))
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	entries, err := os.ReadFile(filepath.Join(source, "entry_points.txt"))
	if err != nil {
		return err
	}
	info := "muster_broker-" + r.pythonVersion() + ".dist-info/"
	wheel := "Wheel-Version: 1.0\nGenerator: muster tools/release\nRoot-Is-Purelib: false\n"
	for _, p := range platforms {
		wheel += "Tag: py3-none-" + p + "\n"
	}
	files = append(files,
		file{name: "muster/bin/muster" + t.suffix(), text: t.program, mode: 0o755},
		file{name: info + "METADATA", text: []byte(strings.Replace(string(metadata), "Version: 0.0.0", "Version: "+r.pythonVersion(), 1) + "\n" + string(readme))},
		file{name: info + "WHEEL", text: []byte(wheel)},
		file{name: info + "entry_points.txt", text: entries},
		file{name: info + "licenses/LICENSE", text: license},
		file{name: info + "sboms/muster.cdx.json", text: t.sbom},
	)
	files = sorted(files)
	record := ""
	for _, f := range files {
		sum := sha256.Sum256(f.text)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	files = append(files, file{name: info + "RECORD", text: []byte(record + info + "RECORD,,\n")})
	text, err := zipped(files, r.time)
	return errors.Join(err, r.write("python/muster_broker-"+r.pythonVersion()+"-py3-none-"+strings.Join(platforms, ".")+".whl", text))
}

// folder reads the files of a folder that end so.
func folder(path, prefix string, endings ...string) ([]file, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range entries {
		for _, ending := range endings {
			if !strings.HasSuffix(e.Name(), ending) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(path, e.Name()))
			if err != nil {
				return nil, err
			}
			out = append(out, file{name: prefix + e.Name(), text: text})
		}
	}
	return out, nil
}
