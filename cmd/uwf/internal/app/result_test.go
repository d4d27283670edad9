package app

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// A limit of namespaces has the error number of a full disk.
func TestClassifyFull(t *testing.T) {
	t.Parallel()
	full := &fs.PathError{Op: "fork/exec", Path: "uwf-box", Err: syscall.ENOSPC}
	require.Contains(t, Classify(full).Hints[0], "uwf cas gc")
	require.Contains(t, Classify(&proc.BoxError{Stage: "namespaces", Err: full}).Hints[0], "uwf doctor")
}
