package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file, or by a slash at the end of its name a folder, of an archive.
type file struct {
	name string
	text []byte
	mode int64 // 0644 if 0
	uid  int   // of tar archives
}

// sorted puts files in the order of their names, whatever the order was in which they came.
func sorted(files []file) []file {
	out := slices.Clone(files)
	slices.SortFunc(out, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for i := range out {
		out[i].mode = cmp.Or(out[i].mode, 0o644)
	}
	return out
}

// tarred makes a tar archive. All files have one time, and its parents come before a folder.
func tarred(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range sorted(files) {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: at, Uid: f.uid, Gid: f.uid, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// gzipped compresses as well as gzip can.
func gzipped(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// tgz makes a compressed tar archive.
func tgz(files []file, at time.Time) ([]byte, error) {
	text, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	return gzipped(text)
}

// zipped makes a zip archive, in the order given.
func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(fs.FileMode(cmp.Or(f.mode, 0o644)))
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// archive makes what people unpack themselves.
func (r *release) archive(t *target) error {
	base := r.base(t)
	files := []file{{name: path.Join(base, "muster"+t.suffix()), text: t.program, mode: 0o755}}
	for _, f := range r.texts {
		files = append(files, file{name: path.Join(base, f.name), text: f.text})
	}
	if t.os == "windows" {
		text, err := zipped(sorted(files), r.time)
		return errors.Join(err, r.write(base+".zip", text))
	}
	text, err := tgz(files, r.time)
	return errors.Join(err, r.write(base+".tar.gz", text))
}

// sums writes the checksums of all results.
func (r *release) sums() error {
	var out strings.Builder
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(text), filepath.ToSlash(name))
		return err
	})
	return errors.Join(err, r.write("SHA256SUMS", []byte(out.String())))
}
