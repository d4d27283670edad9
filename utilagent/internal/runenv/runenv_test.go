package runenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnd(t *testing.T) {
	t.Parallel()
	var calls []string
	r := &Run{}
	r.AtEnd(func() { calls = append(calls, "first") })
	r.AtEnd(func() {
		calls = append(calls, "second")
		r.AtEnd(func() { calls = append(calls, "when the step is stored") })
	})
	for _, want := range [][]string{{"second", "first"}, {"when the step is stored"}, nil} {
		calls = nil
		r.End()
		require.Equal(t, want, calls)
	}
}
