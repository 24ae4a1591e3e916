package main

// Where muster will be found once it is published. Nothing is yet: change these before the
// first publication, and the Go module's path by scripts/module.
const (
	// downloads is the address below which a folder for each version has its archives.
	downloads = "https://example.org/muster/releases/download"
	// homepage is where people read about it.
	homepage = "https://example.org/muster"
	// mavenGroup is the group id of the packages for the JVM. Registries take only groups that
	// belong to a domain. The documents and packages/jvm name it too.
	mavenGroup = "muster"
)
