// Package corpus contains homes, remotes and bundles created by an earlier version, with what that version
// printed about them. The test opens, reads, continues and compares them with the current programs, through
// the command line only. README.md describes the files.
package corpus
