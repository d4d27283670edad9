package fsstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/exactjson"
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
	format format
	exists bool
}

// find tells what is at dir. Nothing at all is a store to be made.
func find(dir string) (found, error) {
	data, err := readSmall(filepath.Join(dir, formatFile))
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
		if data, err := readSmall(filepath.Join(dir, formatFile)); err == nil {
			return parseFormat(data) // another process has made the store since we looked
		}
		return found{}, &protocol.Error{
			Code:    protocol.CodeCorrupt,
			Message: fmt.Sprintf("%s is missing, but there are nodes: restore it; its hash is %q or %q", formatFile, cas.XXH3, cas.XXH64),
		}
	}
	return found{exists: true, format: format{Version: formatVersion, Hash: cas.XXH64, Layout: l, Flush: flushAuto}}, nil
}

// newStore is a store that is still to be made.
func newStore() found {
	return found{format: format{Version: formatVersion, Hash: cas.XXH3, Layout: fan2, Flush: flushAuto}}
}

// maxSmall bounds the files of a store that hold a line, in bytes.
const maxSmall = 64 << 10

func readSmall(path string) ([]byte, error) { return careful.ReadFile(path, maxSmall, careful.Follow) }

// parseFormat reads format.json. Errors: a [*protocol.Error] of code newer for the
// store of a newer program, which may rely on something that we would break or
// not see: that is whatever is JSON, or nearly so, and not understood; of code corrupt
// for the rest.
func parseFormat(data []byte) (found, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as an editor leaves it
	if !json.Valid(data) {
		return found{}, notJSON(data)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil || entries == nil {
		return found{}, newerFormat("another form")
	}
	var f format
	if err := json.Unmarshal(entries["version"], &f.Version); err != nil || f.Version != formatVersion {
		return found{}, newerFormat("version %.40s", entries["version"])
	}
	delete(entries, "version")
	for key, into := range map[string]any{"hash": &f.Hash, "layout": &f.Layout, "flush": &f.Flush} {
		if err := json.Unmarshal(entries[key], into); err != nil {
			return found{}, newerFormat("%s %.40s", key, entries[key])
		}
		delete(entries, key)
	}
	switch {
	case !f.Hash.Known():
		return found{}, newerFormat("hash function %.40q", f.Hash)
	case !knownLayout(f.Layout):
		return found{}, newerFormat("layout %.40q", f.Layout)
	case !knownFlush(f.Flush):
		return found{}, newerFormat("flush mode %.40q", f.Flush)
	}
	if extra := slices.Sorted(maps.Keys(entries)); len(extra) > 0 {
		return found{}, newerFormat("entry %q", extra[0])
	}
	if err := exactjson.Check(data); err != nil {
		return found{}, newerFormat("another form: %v", err)
	}
	return found{format: f, exists: true}, nil
}

// notJSON tells a damaged format.json from that of a newer program in a form which is
// not quite JSON: one that goes on behind its first value, or names another version.
func notJSON(data []byte) error {
	values := json.NewDecoder(bytes.NewReader(data))
	if values.Decode(new(json.RawMessage)) == nil && len(bytes.Trim(data[values.InputOffset():], "\x00 \t\r\n")) > 0 {
		return newerFormat("more than one value")
	}
	text := bytes.ReplaceAll(data, []byte("\x00"), nil) // it may be UTF-16
	for _, m := range regexp.MustCompile(`(?i)version\W{0,8}(\w[\w.]*)`).FindAllSubmatch(text, -1) {
		if string(m[1]) != fmt.Sprint(formatVersion) {
			return newerFormat("version %.40s", m[1])
		}
	}
	return damagedFormat("it is not JSON")
}

// newerFormat is the error for the store of a newer program.
func newerFormat(format string, args ...any) error {
	return &protocol.Error{
		Code:    protocol.CodeUnsupportedVersion,
		Message: fmt.Sprintf("%s has %s, which this program does not know: a newer uwf made the store", formatFile, fmt.Sprintf(format, args...)),
	}
}

func damagedFormat(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("%s is damaged: %v", formatFile, err), Err: err}
}

// Readable reports whether this program may use what is at dir: errors are those of
// [Open], for commands that need no node but must not change a home whose store
// is a newer program's.
func Readable(dir string) error {
	_, err := find(dir)
	return atStore(dir, err)
}

// atStore says which store an error is about, and keeps its code.
func atStore(dir string, err error) error {
	if coded, ok := errors.AsType[*protocol.Error](err); ok {
		return &protocol.Error{Code: coded.Code, Message: fmt.Sprintf("store %s: %s", dir, coded.Message), Err: err}
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return nil
}

func writeFormat(fsys durable.FS, dir string, f format) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, filepath.Join(dir, formatFile), append(text, '\n'), 0o644)
}
