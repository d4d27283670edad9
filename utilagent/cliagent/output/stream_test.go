package output

import (
	"bufio"
	"bytes"
	"io"
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
		line, err := in.Line()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		got = append(got, len(line))
	}
	require.Equal(t, []int{3, 0, maxLine, 4}, got)
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
