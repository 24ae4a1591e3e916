package serve

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"muster/internal/metadata/config"
)

// warn tells what was given and has no effect, and which passwords others can read.
func (f *serveFlags) warn(stderr io.Writer) {
	for _, w := range f.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
	f.warnOfSecrets(stderr)
}

// warnOfSecrets warns of passwords that others on the machine can read: arguments are seen
// by all who list processes, and files by all whom their mode allows.
func (f *serveFlags) warnOfSecrets(stderr io.Writer) {
	if _, rest, ok := strings.Cut(f.store, "://"); ok && hasPassword(rest) {
		fmt.Fprintln(stderr, "warning: the password in --store can be seen by everyone on this machine who lists processes; give the URL as MUSTER_STORE in the environment, or as muster.store in a file for --config")
	}
	for _, s := range f.set {
		if name, value, _ := strings.Cut(s, "="); config.IsSecret(name) && !config.HasReference(value) {
			fmt.Fprintf(stderr, "warning: --set %s=… can be seen by everyone on this machine who lists processes; write %s='${env:NAME}' or '${file:/path}' instead\n", name, name)
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
			fmt.Fprintf(stderr, "warning: %s has passwords and can be read by everyone on this machine\n", f.config)
			return
		}
	}
}

// hasPassword says whether what follows the scheme of a URL has a password before its host,
// or one for sentinels after it. A reference is none.
func hasPassword(rest string) bool {
	at := strings.LastIndexByte(rest, '@')
	if at >= 0 && strings.Contains(rest[:at], ":") && !config.HasReference(rest[:at]) {
		return true
	}
	_, value, ok := strings.Cut(rest, "sentinel_password=")
	return ok && !config.HasReference(value)
}
