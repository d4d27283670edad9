// Package corpus holds homes, remotes and bundles that an earlier program made, with what
// that program printed about them. The test opens, reads, continues and compares them with
// the programs of the tree, which it knows from outside only. README.md describes the files.
package corpus
