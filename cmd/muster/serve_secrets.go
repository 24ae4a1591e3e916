package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"muster/internal/metadata/config"
)

// warnOfSecrets warns of passwords that others on the machine can read: arguments are seen
// by all who list processes, and files by all whom their mode allows.
func (f *serveFlags) warnOfSecrets(stderr io.Writer) {
	for _, s := range f.set {
		if name, value, _ := strings.Cut(s, "="); config.IsSecret(name) && !config.HasReference(value) {
			fmt.Fprintf(stderr, "warning: --set %s=… can be seen by everybody on this machine who lists processes; write %s='${env:NAME}' or '${file:/path}' instead\n", name, name)
		}
	}
	if f.config == "" || runtime.GOOS == "windows" { // There the mode does not tell.
		return
	}
	info, err := os.Stat(f.config)
	if err != nil || info.Mode()&0o004 == 0 {
		return
	}
	text, err := os.Open(f.config)
	if err != nil {
		return // Whoever reads the settings tells of it.
	}
	defer func() { _ = text.Close() }() // It was only read.
	props, _ := config.ParseProperties(text)
	for name, value := range props {
		if config.IsSecret(name) && !config.HasReference(value) {
			fmt.Fprintf(stderr, "warning: %s has passwords and can be read by everybody on this machine\n", f.config)
			return
		}
	}
}
