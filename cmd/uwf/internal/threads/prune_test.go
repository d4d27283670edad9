package threads

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestPrintPrune(t *testing.T) {
	t.Parallel()
	print := func(r prune.Report) string {
		var out bytes.Buffer
		printPrune(&term.Page{To: &out}, r)
		return out.String()
	}
	ended := heads.Ended{Thread: "T", Head: "H", Status: protocol.StatusCompleted, CompletedAt: 1780000000000}
	require.Equal(t, "forgot 0 threads, kept 3\n", print(prune.Report{Kept: 3}))
	prosetest.Text(t, print(prune.Report{Pruned: []heads.Ended{ended}, Busy: []string{"B"}, Kept: 1}))
	require.Contains(t, print(prune.Report{Pruned: []heads.Ended{ended, ended}, DryRun: true}), "would forget 2 threads, kept 0\n")
}
