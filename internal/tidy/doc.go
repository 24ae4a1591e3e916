// Package tidy holds tests about the source itself, so that the rules which
// keep muster readable are checked by the compiler's own parser and not by
// memory.
//
// Each rule is a function from parsed files to a list of problems. One test
// runs it on the whole tree; another feeds it a small bad source and demands
// that it complains, because a check that cannot fail checks nothing.
//
//	imports_test.go  who may import whom
//	sizes_test.go    lines of a file, lines of a function
//	purity_test.go   no clock, I/O or concurrency in the pure packages
//	maprange_test.go no iteration over a map in the pure cores
//	docs_test.go     every package says what it owns
//	text_test.go     no path of one machine, no note to finish later
//	sleep_test.go    tests wait for something, never for a while
//	windows_test.go  what is for Windows compiles
//
// The package has no code of its own and nothing may import it.
package tidy
