package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line with a string of twenty megabytes keeps everything but the middle of that string.
func TestLongText(t *testing.T) {
	base := inUse()
	block := strings.Repeat(`x\n\u00fc\"\\ `, 4096)
	const blocks = 320 // 20 MB
	body := &repeat{s: block, left: blocks}
	in := &Stream{lines: bufio.NewReaderSize(io.MultiReader(
		strings.NewReader(`{"a":[1,"b"],"text":"the beginning `), body,
		strings.NewReader(` the end","z":{"after":true}}`+"\nnext\n"),
	), 64<<10)}
	line, cut, err := in.Line()
	require.NoError(t, err)
	require.Less(t, inUse(), base+(16<<20))
	var got struct {
		A    []any
		Text string
		Z    struct{ After bool }
	}
	require.NoError(t, json.Unmarshal(line, &got))
	require.Equal(t, []any{1.0, "b"}, got.A)
	require.True(t, got.Z.After)
	require.True(t, strings.HasPrefix(got.Text, "the beginning x\nü"))
	require.True(t, strings.HasSuffix(got.Text, " the end"))
	require.Contains(t, got.Text, fmt.Sprintf(leftOut, cut))
	require.Greater(t, cut, blocks*len(block)-(2<<20))
	require.Less(t, len(line), 2<<20)

	line, cut, err = in.Line()
	require.NoError(t, err)
	require.Equal(t, "next", string(line))
	require.Zero(t, cut)
}

// repeat is a text so many times.
type repeat struct {
	s        string
	at, left int
}

func (r *repeat) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.s[r.at:])
	if r.at += n; r.at == len(r.s) {
		r.at, r.left = 0, r.left-1
	}
	return n, nil
}

// JSON stays valid JSON, wherever the input is split, and differs only in the middle of long strings.
func FuzzShortener(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `["\\","\"","\u0041\ud83d\ude00",""]`, `{"\"":"\\\""}`, `[1,{"x":[null]}]`, "text", "", "[\"\xff\"]"} {
		f.Add([]byte(seed), 3, 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, at, times int) {
		at = max(0, min(at, len(data)))
		s := newShortener(data[:at])
		s.write(data[at:])
		line, cut := s.line()
		require.Zero(t, cut)
		require.Equal(t, string(bytes.TrimRight(data, "\r\n")), string(line), "what is short is not touched")

		text, err := json.Marshal(strings.Repeat(string(data)+"\n", 1+max(0, min(times, 1<<20/(len(data)+1)))))
		require.NoError(t, err)
		s = newShortener([]byte("["))
		for piece := range bytes.SplitAfterSeq(append(text, ']'), []byte("n")) {
			s.write(piece)
		}
		line, cut = s.line()
		require.True(t, json.Valid(line))
		require.LessOrEqual(t, len(line), textHead+4*textTail)
		if cut == 0 {
			require.Equal(t, "["+string(text)+"]", string(line))
		}
	})
}
