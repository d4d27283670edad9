package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// A uwf-box that has ended while it waited is replaced by another one.
func TestAheadThatHasEnded(t *testing.T) {
	t.Parallel()
	plans := 0
	_, err := proc.Start(proc.Command{Path: "/bin/true", Box: &proc.Box{
		Plan:  func() ([]byte, error) { plans++; return []byte("plan"), nil },
		Ahead: proc.StartAhead("/bin/true", proc.Box{}, false),
	}})
	why := (*proc.BoxError)(nil)
	require.ErrorAs(t, err, &why)
	if why.Stage == "namespaces" {
		t.Skip("no namespaces here")
	}
	require.Equal(t, "report", why.Stage)
	require.ErrorIs(t, err, proc.ErrBoxSilent)
	require.Equal(t, 2, plans)
}
