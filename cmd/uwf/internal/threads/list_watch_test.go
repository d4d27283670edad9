package threads

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func item(id string, s protocol.Status) protocol.ThreadItem {
	name := "w"
	return protocol.ThreadItem{Thread: id, Status: s, StatusDisplay: string(s), WorkflowName: &name}
}

func TestChangesOfAListAreToldOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &changeLines{w: &out, before: map[string]protocol.ThreadItem{}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	show := func(items ...protocol.ThreadItem) string {
		out.Reset()
		require.NoError(t, c.show(items, now))
		return out.String()
	}
	require.Equal(t, "03:04:05  A  idle  w\n03:04:05  B  idle  w\n", show(item("B", "idle"), item("A", "idle")))
	require.Empty(t, show(item("B", "idle"), item("A", "idle")))
	require.Equal(t, "03:04:05  A  running  w\n", show(item("B", "idle"), item("A", "running")))
	require.Equal(t, "03:04:05  B  not in the list any more\n", show(item("A", "running")))
	c.json = true
	require.Equal(t, "{\"thread\":\"A\",\"listed\":false}\n", show())
}

// What is drawn over must be as high as what was drawn.
func TestScreenDrawsOverItself(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{w: &out, size: func() (int, int) { return 20, 5 }}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, s.show([]protocol.ThreadItem{item("A", "idle")}, now))
	require.Equal(t, "\r\x1b[K1 thread · 03:04:05\n\r\x1b[KTHREAD  STATUS  WO…\n\r\x1b[KA       idle    w\n\x1b[J", clearTail(out.String()))
	out.Reset()
	require.NoError(t, s.show([]protocol.ThreadItem{item("A", "idle"), item("B", "idle"), item("C", "idle"), item("D", "idle")}, now))
	require.Contains(t, out.String(), "\x1b[3A", "as many lines up as there were")
	require.Contains(t, out.String(), "… 3 more")
	require.Equal(t, 4, s.drawn, "it never scrolls")
}

// clearTail takes out blanks before line ends, which a table leaves.
func clearTail(s string) string {
	var b bytes.Buffer
	for _, line := range bytes.SplitAfter([]byte(s), []byte("\n")) {
		if bytes.HasSuffix(line, []byte("\n")) {
			b.Write(bytes.TrimRight(line, " \n"))
			b.WriteByte('\n')
			continue
		}
		b.Write(line)
	}
	return b.String()
}
