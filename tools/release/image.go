package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the user in the image, as in other images without a shell.
const user = 65532

// The media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor names a part of an image by its content.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	platform
	Created string    `json:"created"`
	Config  runConfig `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	} `json:"history"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// runConfig is how a container runs. Docker and Podman have a health check there, which OCI
// has not.
type runConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Labels       map[string]string
	StopSignal   string
	Healthcheck  healthCheck
}

type healthCheck struct {
	Test                                          []string
	Interval, Timeout, StartPeriod, StartInterval time.Duration
	Retries                                       int
}

func (r *release) runConfig() runConfig {
	return runConfig{
		User:         fmt.Sprintf("%d:%d", user, user),
		ExposedPorts: map[string]struct{}{"9092/tcp": {}, "9021/tcp": {}},
		Env: []string{
			"PATH=/usr/bin", "MUSTER_LOG_DIR=/var/lib/muster", "MUSTER_HTTP_LISTENER=0.0.0.0:9021",
			// With this alone the broker listens on port 9092 of all addresses.
			"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092",
		},
		Entrypoint: []string{"/usr/bin/muster"}, Cmd: []string{"serve"},
		Volumes: map[string]struct{}{"/var/lib/muster": {}}, WorkingDir: "/var/lib/muster", StopSignal: "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "muster", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0"},
		Healthcheck: healthCheck{
			Test: []string{"CMD", "/usr/bin/muster", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second,
			StartPeriod: time.Minute, StartInterval: 200 * time.Millisecond, Retries: 3,
		},
	}
}

// image makes a container image for all processors of Linux, as an OCI layout: a folder that
// skopeo, crane and others push to a registry or give to Docker.
func (r *release) image(built []*target) error {
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, t := range built {
		if t.os != "linux" {
			continue
		}
		d, err := r.imageOf(t)
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, d)
	}
	if len(all.Manifests) == 0 {
		return nil
	}
	d, err := r.blobJSON(typeIndex, all)
	if err != nil {
		return err
	}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.plain()}
	text, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{d}})
	if err != nil {
		return err
	}
	if err := r.write("image/index.json", text); err != nil {
		return err
	}
	return r.write("image/oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
}

// imageOf makes the image for one processor, which is a single layer.
func (r *release) imageOf(t *target) (descriptor, error) {
	files := tree(t, r.texts)
	layer, err := tarred(files, r.time)
	if err != nil {
		return descriptor{}, err
	}
	small, err := gzipped(layer)
	if err != nil {
		return descriptor{}, err
	}
	layerAt, err := r.blob(typeLayer, small)
	if err != nil {
		return descriptor{}, err
	}
	p := platform{Architecture: t.arch, OS: t.os}
	config := imageConfig{platform: p, Created: r.time.Format(time.RFC3339), Config: r.runConfig(), RootFS: rootFS{"layers", []string{digest(layer)}}}
	config.History = append(config.History, struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}{config.Created, "muster " + r.version})
	configAt, err := r.blobJSON(typeConfig, config)
	if err != nil {
		return descriptor{}, err
	}
	d, err := r.blobJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: configAt, Layers: []descriptor{layerAt}})
	d.Platform = &p
	return d, err
}

// tree is what a container sees.
func tree(t *target, texts []file) []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // It is trusted for some certificates only, which a file cannot say.
		}
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // Buffers take everything.
	}
	files := []file{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", text: roots.Bytes()},
		{name: "etc/passwd", text: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nmuster:x:%d:%d:muster:/var/lib/muster:/sbin/nologin\n", user, user)},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/share/", mode: 0o755}, {name: "usr/share/muster/", mode: 0o755},
		{name: "usr/bin/muster", text: t.program, mode: 0o755},
		{name: "usr/share/muster/muster.cdx.json", text: t.sbom},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755}, {name: "var/lib/muster/", mode: 0o700, uid: user},
	}
	for _, f := range texts {
		if f.name == "LICENSE" {
			files = append(files, file{name: "usr/share/muster/LICENSE", text: f.text})
		}
	}
	return files
}

func digest(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

// blob writes a part of an image, under a name that is its content.
func (r *release) blob(kind string, text []byte) (descriptor, error) {
	d := descriptor{MediaType: kind, Digest: digest(text), Size: len(text)}
	return d, r.write("image/blobs/sha256/"+d.Digest[len("sha256:"):], text)
}

func (r *release) blobJSON(kind string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return r.blob(kind, text)
}
