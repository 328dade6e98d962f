// Package demo is the world around the examples: an embedded broker or a real one,
// topics, records to begin with, and the printing of what comes out. A program of
// yours has no need of it; what the examples show is in their own folders.
//
// The package imports what is public. Begin with [Main].
package demo
