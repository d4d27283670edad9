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
	source, changed, err := m.changed(tree)
	if err != nil {
		return nil, err
	}
	path := m.path(tree)
	return func() error { return os.WriteFile(path, source, 0o644) }, os.WriteFile(path, changed, 0o644)
}

// changed is the file as it is, and with the mistake.
func (m mutant) changed(tree string) (source, changed []byte, err error) {
	source, err = os.ReadFile(m.path(tree))
	if err != nil {
		return nil, nil, err
	}
	if n := bytes.Count(source, []byte(m.old)); n != 1 {
		return nil, nil, fmt.Errorf("%s has %q %d times: the list of mutants is out of date", m.file, m.old, n)
	}
	return source, bytes.Replace(source, []byte(m.old), []byte(m.new), 1), nil
}

func (m mutant) path(tree string) string { return filepath.Join(tree, filepath.FromSlash(m.file)) }
