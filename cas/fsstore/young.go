package fsstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/united-workforce/uwf/util/durable"
)

// keepYoung marks the files that were there already as wanted: by its time the
// collector sees that somebody relies on a node again. It comes after the flush,
// which a changed time would make dearer.
func (s *Store) keepYoung(files []durable.File) error {
	if s.format.Layout != fan2 {
		return nil
	}
	for _, f := range files {
		if !f.Present {
			continue
		}
		if err := s.renew(f.Path); err != nil {
			return fmt.Errorf("mark a node that is there already as wanted: %w", err)
		}
	}
	return nil
}

// renew makes a file young. Only the owner of a file may touch it: another
// member of a team that shares a store replaces it by a copy. Whoever may do neither
// cannot write here at all, so no node of his can rely on this one.
func (s *Store) renew(path string) error {
	err := s.fs.Touch(path)
	if !mayNot(err) {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	err = durable.WriteAll(s.fs, []durable.File{{Path: path, Data: data, Perm: nodePerm}}, durable.Full)
	if mayNot(err) {
		return nil
	}
	return err
}

func mayNot(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
