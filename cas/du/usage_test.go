package du_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/du"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Two threads that share all but their starts take less together than alone, by
// just what they share.
func TestMeasure(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	home := t.TempDir()
	s, err := fsstore.Open(ctx, filepath.Join(home, "cas"), fsstore.Options{Home: home, Flush: "none"})
	require.NoError(t, err)
	b := cas.NewBatch(s, time.Now)
	workflow, err := b.Add(ctx, protocol.Workflow{Name: "w", Roles: map[string]protocol.Role{}, Graph: map[string]protocol.GraphNode{}})
	require.NoError(t, err)
	x := fileheads.Open(home, durable.OS())
	own := int64(0)
	for i, prompt := range []string{"one", "two"} {
		start, err := b.Add(ctx, protocol.Start{Workflow: workflow, Prompt: prompt, Cwd: "/"})
		require.NoError(t, err)
		require.NoError(t, b.Commit(ctx))
		require.NoError(t, x.Add(ctx, []string{"01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB"}[i], start, heads.Facts{}))
		info, err := os.Stat(s.Path(start))
		require.NoError(t, err)
		own += info.Size()
	}
	garbage, err := b.Add(ctx, protocol.Text("garbage"))
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))

	r, err := du.Measure(ctx, s, x)
	require.NoError(t, err)
	require.Equal(t, 2, r.Threads)
	require.Equal(t, 12, r.Nodes, "meta-schema, seven kinds, workflow, two starts, one text")
	common := r.Shared - own
	require.Equal(t, 2*common+own, r.Alone)
	byTitle, nodes, bytes := map[string]du.Type{}, 0, int64(0)
	for _, typ := range r.Types {
		byTitle[typ.Title] = typ
		nodes, bytes = nodes+typ.Nodes, bytes+typ.Bytes
	}
	require.Equal(t, r.Nodes, nodes)
	require.Equal(t, r.Bytes, bytes)
	require.Equal(t, 2, byTitle["@uwf/start"].Nodes)
	require.Equal(t, own, byTitle["@uwf/start"].Bytes)
	size, _, err := s.Stat(garbage)
	require.NoError(t, err)
	require.Equal(t, size, byTitle["@uwf/text"].Bytes)
}
