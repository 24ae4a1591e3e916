package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mavenClassifiers are what Maven's users call platforms (os-maven-plugin).
var mavenClassifiers = map[string]string{
	"linux/amd64": "linux-x86_64", "linux/arm64": "linux-aarch_64", "darwin/amd64": "osx-x86_64", "darwin/arm64": "osx-aarch_64",
	"windows/amd64": "windows-x86_64", "windows/arm64": "windows-aarch_64",
}

// mavenDefaults are the platforms whose programs muster-junit depends on.
var mavenDefaults = []string{"linux-x86_64", "linux-aarch_64", "osx-aarch_64", "windows-x86_64"}

// compileJVM compiles packages/jvm. The JDK and Maven do that, and nothing else: what they
// pack has the time and the machine in it.
func (r *release) compileJVM(ctx context.Context) (err error) {
	for _, program := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the package for the JVM needs a JDK of at least version 17, and Maven (%w); -without jvm leaves it out", err)
		}
	}
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	source := filepath.Join(r.root, "packages", "jvm")
	if _, err := output(ctx, source, "mvn", "-B", "-q", "-Dfolder="+folder, "compile"); err != nil {
		return err
	}
	if r.classes, err = walked(filepath.Join(folder, "classes"), ".class"); err != nil {
		return err
	}
	if len(r.classes) == 0 {
		return errors.New("no class was compiled by Maven")
	}
	return nil
}

// walked reads the files below a folder that end so.
func walked(root, ending string) ([]file, error) {
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		out = append(out, file{name: filepath.ToSlash(name), text: text})
		return err
	})
	return out, err
}

// jvmBinary makes the jar with the program for a target.
func (r *release) jvmBinary(t *target) error {
	classifier := mavenClassifiers[t.os+"/"+t.arch]
	folder := "muster/binary/" + classifier + "/"
	name := folder + "muster" + t.suffix()
	return r.jar("muster-binary", classifier, []file{
		{name: name, text: t.program},
		{name: name + ".sha256", text: fmt.Appendf(nil, "%x", sha256.Sum256(t.program))},
		{name: folder + "muster.cdx.json", text: t.sbom},
	})
}

// jvmMain makes muster-junit, and the descriptions that Maven and Gradle read: dist/jvm is a
// repository for both.
func (r *release) jvmMain(built []*target) error {
	sources, err := walked(filepath.Join(r.root, "packages", "jvm", "src"), ".java")
	if err != nil {
		return err
	}
	var dependencies strings.Builder
	for _, t := range built {
		if classifier := mavenClassifiers[t.os+"/"+t.arch]; slices.Contains(mavenDefaults, classifier) {
			fmt.Fprintf(&dependencies, "    <dependency>\n      <groupId>%s</groupId>\n      <artifactId>muster-binary</artifactId>\n      <version>%s</version>\n      <classifier>%s</classifier>\n    </dependency>\n",
				mavenGroup, r.plain(), classifier)
		}
	}
	return errors.Join(
		r.jar("muster-junit", "", r.classes),
		r.jar("muster-junit", "sources", sources),
		r.pom("muster-junit", "A Kafka-compatible broker for tests: a real one, in memory, ready within milliseconds", "  <dependencies>\n"+dependencies.String()+"  </dependencies>\n"),
		r.pom("muster-binary", "The program of muster-junit, by classifiers for each platform", ""),
	)
}

// mavenFile is where a repository has a file of a package.
func (r *release) mavenFile(artifact, ending string) string {
	return "jvm/" + strings.ReplaceAll(mavenGroup, ".", "/") + "/" + artifact + "/" + r.plain() + "/" + artifact + "-" + r.plain() + ending
}

func (r *release) pom(artifact, description, dependencies string) error {
	return r.write(r.mavenFile(artifact, ".pom"), fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>%s</groupId>
  <artifactId>%s</artifactId>
  <version>%s</version>
  <name>%s</name>
  <description>%s</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
    </license>
  </licenses>
%s</project>
`, mavenGroup, artifact, r.plain(), artifact, description, dependencies))
}

// jar makes a jar, whose manifest comes first.
func (r *release) jar(artifact, classifier string, files []file) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	manifest := "Manifest-Version: 1.0\nImplementation-Title: " + artifact + "\nImplementation-Version: " + r.plain() + "\n"
	ending := ".jar"
	if classifier == "" {
		manifest += "Automatic-Module-Name: muster.junit\n"
	} else {
		ending = "-" + classifier + ".jar"
	}
	text, err := zipped(append([]file{{name: "META-INF/MANIFEST.MF", text: []byte(manifest)}, {name: "META-INF/LICENSE", text: license}}, sorted(files)...), r.time)
	return errors.Join(err, r.write(r.mavenFile(artifact, ending), text))
}
