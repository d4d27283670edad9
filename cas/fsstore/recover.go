package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Recover writes the format.json that a store has lost: its nodes say under
// which hash function they have their names. A format.json that is there, but
// cannot be read, is moved to the quarantine. It returns what it has done, "" if
// nothing was to be done. Errors: [cas.ErrReadOnly] for the store of a newer
// program; nodes that fit neither function.
func Recover(ctx context.Context, dir string, fsys durable.FS) (done string, err error) {
	at := filepath.Join(dir, formatFile)
	data, readErr := readSmall(at)
	if readErr == nil {
		_, err := parseFormat(data)
		if err == nil || errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}) {
			return "", atStore(dir, err)
		}
	} else if !errors.Is(readErr, fs.ErrNotExist) {
		return "", readErr
	} else if _, err := find(dir); err == nil {
		return "", nil // the original's, or none
	}
	hash, err := guessHash(ctx, dir)
	if err != nil {
		return "", err
	}
	if readErr == nil {
		sole := Sole{store: &Store{dir: dir, fs: fsys}}
		if _, err := sole.Quarantine(at); err != nil {
			return "", err
		}
	}
	f := format{Version: formatVersion, Hash: hash, Layout: fan2, Flush: flushAuto}
	if err := writeFormat(fsys, dir, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("made %s again: the nodes have %s hashes", formatFile, hash), nil
}

// guessSample is how many nodes are looked at: some may be damaged.
const guessSample = 64

func guessHash(ctx context.Context, dir string) (cas.Algorithm, error) {
	s := &Store{dir: dir, format: format{Layout: fan2}}
	votes := map[cas.Algorithm]int{}
	seen := 0
	for h, err := range s.All(ctx, "") {
		if err != nil {
			return "", err
		}
		data, err := s.readFile(h)
		if err != nil {
			continue // one of the others will do
		}
		for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
			if _, err := a.UnmarshalFile(h, data); err == nil {
				votes[a]++
			}
		}
		if seen++; seen == guessSample {
			break
		}
	}
	switch {
	case votes[cas.XXH3] > votes[cas.XXH64]:
		return cas.XXH3, nil
	case votes[cas.XXH64] > 0:
		return cas.XXH64, nil
	}
	return "", fmt.Errorf("store %s: none of its nodes tells its hash function", dir)
}
