//go:build !linux

package proc

import "errors"

func (b *Box) start(Command) (*Child, error) {
	return nil, &BoxError{Stage: "namespaces", Err: errors.ErrUnsupported}
}
