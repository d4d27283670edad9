package fsstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// The names beside the nodes.
const (
	formatFile = "format.json"
	lockFile   = "format.lock" // held while format.json is made
	nodesDir   = "nodes"
)

// formatVersion is the one that this program writes.
const formatVersion = 1

// format is format.json: what a program must know to use a store.
type format struct {
	Version int           `json:"version"`
	Hash    cas.Algorithm `json:"hash"`
	Layout  layout        `json:"layout"`
	Flush   string        `json:"flush"`
}

// found is what is at a store's directory.
type found struct {
	format   format
	exists   bool
	readOnly error // set if the store is of a newer program
}

// find tells what is at dir. Nothing at all is a store to be made.
func find(dir string) (found, error) {
	data, err := os.ReadFile(filepath.Join(dir, formatFile))
	switch {
	case err == nil:
		return parseFormat(data)
	case !errors.Is(err, fs.ErrNotExist):
		return found{}, err
	}
	l, err := detectLayout(dir)
	switch {
	case err != nil:
		return found{}, err
	case l == "":
		return newStore(), nil
	case l == fan2:
		if only, err := onlyFoundation(dir); only || err != nil {
			return newStore(), err
		}
		if data, err := os.ReadFile(filepath.Join(dir, formatFile)); err == nil {
			return parseFormat(data) // another process has made the store since we looked
		}
		return found{}, fmt.Errorf("%s is missing, but there are nodes: restore it; its hash is %q or %q",
			formatFile, cas.XXH3, cas.XXH64)
	}
	return found{exists: true, format: format{Version: formatVersion, Hash: cas.XXH64, Layout: l, Flush: flushAuto}}, nil
}

// newStore is a store that is still to be made.
func newStore() found {
	return found{format: format{Version: formatVersion, Hash: cas.XXH3, Layout: fan2, Flush: flushAuto}}
}

// parseFormat reads format.json. What it does not know makes the store
// read-only: a newer program may rely on something that we would break.
func parseFormat(data []byte) (found, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return found{}, fmt.Errorf("%s: %w", formatFile, err)
	}
	var f format
	for key, into := range map[string]any{"version": &f.Version, "hash": &f.Hash, "layout": &f.Layout, "flush": &f.Flush} {
		if err := json.Unmarshal(entries[key], into); err != nil {
			return found{}, fmt.Errorf("%s: %s: %w", formatFile, key, err)
		}
		delete(entries, key)
	}
	if !knownLayout(f.Layout) {
		return found{}, fmt.Errorf("%s: unknown layout %q: a newer program made this store", formatFile, f.Layout)
	}
	return found{format: f, exists: true, readOnly: f.unknown(slices.Sorted(maps.Keys(entries)))}, nil
}

// unknown says what in a format this program does not know; extra are the
// entries beside its own.
func (f format) unknown(extra []string) error {
	switch {
	case f.Version != formatVersion:
		return readOnly("version %d", f.Version)
	case !f.Hash.Known():
		return readOnly("hash function %q", f.Hash)
	case !knownFlush(f.Flush):
		return readOnly("flush mode %q", f.Flush)
	case len(extra) > 0:
		return readOnly("entry %q", extra[0])
	}
	return nil
}

func readOnly(format string, args ...any) error {
	return fmt.Errorf("%w: %s has an unknown %s; a newer program made it",
		cas.ErrReadOnly, formatFile, fmt.Sprintf(format, args...))
}

func writeFormat(fsys durable.FS, dir string, f format) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, filepath.Join(dir, formatFile), append(text, '\n'), 0o644)
}
