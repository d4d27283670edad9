package output

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An overlong line is truncated, and the next one is complete.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine+10)
	in := &Stream{}
	in.lines = bufio.NewReaderSize(strings.NewReader("one\r\n\n"+long+"\nlast"), 64<<10)
	var got []int
	for {
		line, cut, err := in.Line()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		if cut > 0 {
			var said bool
			line, said = bytes.CutSuffix(line, fmt.Appendf(nil, leftOut, cut))
			require.True(t, said, "the line says so")
		}
		got = append(got, len(line)+cut)
	}
	require.Equal(t, []int{3, 0, len(long) + 1, 4}, got)
}

func TestTail(t *testing.T) {
	t.Parallel()
	var short Tail
	_, _ = short.Write([]byte("one \x1b[31mred\x1b[0m\x00 two\xff\n"))
	require.Equal(t, "one red two\uFFFD\n", short.Text())
	var long Tail
	var all bytes.Buffer
	for i := range 1000 {
		line := strings.Repeat(string(rune('a'+i%26)), 997) + "\n"
		all.WriteString(line)
		_, _ = long.Write([]byte(line))
	}
	text := all.String()
	require.True(t, strings.HasPrefix(long.Text(), text[:headBytes]))
	require.True(t, strings.HasSuffix(long.Text(), text[len(text)-TailBytes:]))
	require.Contains(t, long.Text(), "bytes …")
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
