package heads_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
)

// A thread that should not be here yet has no head that was wanted.
func TestConflictWithoutWant(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &heads.ConflictError{Thread: "T", Got: "G"}, "thread T has come here meanwhile: its head is G")
	require.EqualError(t, &heads.ConflictError{Thread: "T", Want: "W", Got: "G"}, "head of thread T moved: want W, got G")
}
