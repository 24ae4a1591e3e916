package broker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"muster/internal/metadata/config"
)

// maxSecretFile bounds what ${file:…} reads: a JAAS line, a password, a URL.
const maxSecretFile = 1 << 20

// resolve puts what environment variables and files hold into the settings that name them.
func resolve(set map[string]string, logger *slog.Logger) (map[string]string, error) {
	return config.Resolve(set, map[string]config.Lookup{
		"env": func(name string) (string, error) {
			value, ok := os.LookupEnv(name)
			if !ok {
				return "", errors.New("there is no such variable")
			}
			return value, nil
		},
		"file": func(name string) (string, error) { return readSecret(name, logger) },
	})
}

// readSecret returns what is in a file, without the end of its last line, which editors put
// there unasked.
func readSecret(name string, logger *slog.Logger) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("it has more than %d bytes", maxSecretFile)
	}
	if info, err := f.Stat(); err == nil && isWorldReadable(info) {
		logger.Warn("a file that settings name can be read by every user of this machine", "file", name)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// warnOfKeystores warns of private keys that everyone on the machine can read.
func (b *Broker) warnOfKeystores() {
	for name, file := range b.cfg.Ending("ssl.keystore.location") {
		if info, err := os.Stat(file); err == nil && isWorldReadable(info) {
			b.logger.Warn("everyone on this machine can read a file with a private key", "file", file, "setting", name)
		}
	}
}
