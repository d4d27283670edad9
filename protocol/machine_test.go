package protocol_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestOfMachine(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	marked := &protocol.Error{Code: protocol.CodeInvalid, Message: "config", Machine: true}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":           {nil, false},
		"an error":          {errors.New("x"), false},
		"no space":          {full, true},
		"marked":            {fmt.Errorf("step: %w", marked), true},
		"a coded error":     {&protocol.Error{Code: protocol.CodeAgent}, false},
		"of no space":       {&protocol.Error{Code: protocol.CodeFailed, Err: full}, true},
		"around one marked": {&protocol.Error{Code: protocol.CodeFailed, Err: fmt.Errorf("x: %w", marked)}, true},
		"no such file":      {fs.ErrNotExist, false},
	} {
		require.Equal(t, c.want, protocol.OfMachine(c.err), name)
	}
}
