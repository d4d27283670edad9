package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/united-workforce/uwf/cas"
)

// Get implements [cas.Getter]. It also returns errors of the file system.
func (s *Store) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if err := ctx.Err(); err != nil {
		return cas.Node{}, err
	}
	if !h.Valid() {
		return cas.Node{}, fmt.Errorf("%w: %q is not a hash", cas.ErrNotFound, h)
	}
	data, err := s.readFile(h)
	if err != nil {
		return cas.Node{}, err
	}
	return s.unmarshal(h, data)
}

// Has implements [cas.Store].
func (s *Store) Has(ctx context.Context, h cas.Hash) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !h.Valid() {
		return false, nil
	}
	_, err := os.Stat(s.Path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readFile reads the file of a node, within bounds.
func (s *Store) readFile(h cas.Hash) ([]byte, error) {
	data, err := readBounded(s.path(h), h)
	if other := s.elsewhere(h); other != "" && errors.Is(err, cas.ErrNotFound) {
		return readBounded(other, h)
	}
	return data, err
}

// readBounded reads the file of node h at path.
func readBounded(path string, h cas.Hash) ([]byte, error) {
	data, err := readRegular(path, cas.MaxFile)
	var odd *notRegularError
	var big *tooBigError
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	case errors.As(err, &odd):
		return nil, &cas.CorruptError{Hash: h, Path: path, Reason: "it is not a file but a " + kindOf(odd.mode)}
	case errors.As(err, &big):
		return nil, &cas.CorruptError{Hash: h, Path: path, Reason: fmt.Sprintf("the file has %d bytes, at most %d are allowed", big.size, cas.MaxFile)}
	}
	return nil, fmt.Errorf("read node %s: %w", h, err)
}

// notRegularError means that the path is not a regular file.
type notRegularError struct{ mode fs.FileMode }

// Error implements error.
func (e *notRegularError) Error() string { return "is not a file" }

// tooBigError means that a file is bigger than allowed.
type tooBigError struct{ size int64 }

// Error implements error.
func (e *tooBigError) Error() string { return "is too big" }

func (s *Store) unmarshal(h cas.Hash, data []byte) (cas.Node, error) {
	n, err := s.format.Hash.UnmarshalFile(h, data)
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		corrupt.Path = s.Path(h)
	}
	return n, err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}
