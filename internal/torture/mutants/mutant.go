package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// mutant is a mistake that somebody could make, and how to torture who made it.
type mutant struct {
	name string
	file string
	old  string // occurs once
	new  string
	// torture are the torturer's arguments: the rows that must find it.
	torture []string
}

// apply makes the mistake; restore takes it back.
func (m mutant) apply(tree string) (restore func() error, err error) {
	path := filepath.Join(tree, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(source, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times: the list of mutants is out of date", m.file, m.old, n)
	}
	changed := bytes.Replace(source, []byte(m.old), []byte(m.new), 1)
	return func() error { return os.WriteFile(path, source, 0o644) }, os.WriteFile(path, changed, 0o644)
}
