package terminal

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriterShowsText(t *testing.T) {
	t.Parallel()
	var screen bytes.Buffer
	w := (&Writer{}).Through(&screen)
	for _, piece := range []string{"a\x1b[8m", "b\xc2", "\x9b2J", "é\xe6\x97", "\xa5\r", "\nend\xe6"} {
		n, err := w.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.Equal(t, `a\u001b[8mb\u009b2Jé日`+"\nend", screen.String(), "characters may be cut anywhere")

	var frame Painter
	frame.Control(ClearLine)
	frame.Control(Bold)
	frame.Text("x\x1b[2J")
	frame.Control(Normal)
	frame.Up(2)
	require.NoError(t, frame.Draw(w))
	require.Equal(t, `a\u001b[8mb\u009b2Jé日`+"\nend\uFFFD\r\x1b[K\x1b[1mx"+`\u001b[2J`+"\x1b[m\x1b[2A", screen.String())

	var pipe bytes.Buffer
	require.NoError(t, frame.Draw(&pipe))
	require.Contains(t, pipe.String(), "\x1b[1mx"+`\u001b[2J`, "forced colours, but no stranger's")
}

func TestNotTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer f.Close()
	require.Same(t, f, Of(f), "its bytes stay")
	require.Nil(t, Of(nil))
	for _, stream := range []any{f, &bytes.Buffer{}, nil} {
		require.False(t, Is(stream))
		columns, lines := Size(stream)
		require.Zero(t, columns+lines)
	}
	require.Equal(t, f, ForChild(f))
}

// BenchmarkWrite measures the cost of escaping for a terminal.
func BenchmarkWrite(b *testing.B) {
	text := bytes.Repeat([]byte("a line of an answer, with é and 日本\n"), 100)
	w := (&Writer{}).Through(&bytes.Buffer{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w.to.(*bytes.Buffer).Reset()
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
