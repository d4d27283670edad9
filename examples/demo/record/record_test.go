package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// session is a terminal session with a line that counts up, replaced by complete lines.
func session(t *testing.T) *screen {
	s := &screen{columns: 20}
	for i, part := range []string{
		"before\r\n$ uwf run\r\n", "\r\x1b[Kstep 1\r\n", "  a · 0s", "\r\x1b[K  a · 1s\r\x1b", "[K  \xe2\x86", "\x92 tool <x>\r\n",
		"\x1b[32mdone\x1b[m in /var/uwf-demo-12/p\r\n\r\n", "after\r\n",
	} {
		require.NoError(t, s.write(time.Duration(i)*time.Second, []byte(part)))
	}
	return s
}

func TestScreen(t *testing.T) {
	t.Parallel()
	s := session(t)
	require.Equal(t, "before\n$ uwf run\nstep 1\n  → tool <x>\ndone in /var/uwf-dem\no-12/p\n\nafter\n\n", s.text())
	require.ErrorContains(t, s.write(0, []byte("\x1b[2J")), "not known")
	require.ErrorContains(t, (&screen{columns: 9}).write(0, []byte("\x1b]0;x")), "not known")
}

func TestScene(t *testing.T) {
	t.Parallel()
	s, err := session(t).scene(`^\$ uwf`, "^after")
	require.NoError(t, err)
	var got []string
	for _, l := range s.lines {
		for _, v := range l {
			got = append(got, v.from.String()+" "+v.text)
		}
	}
	require.Equal(t, []string{
		"0s $ uwf run", "700ms step 1", "1.4s   a · 0s", "2.1s   a · 1s", "2.8s   ", "3.5s   → tool <x>",
		"4.2s done in /var/uwf-dem", "4.2s o-12/p",
	}, got, "no pause is longer than 700 ms")
	require.Equal(t, 20, s.columns())
	_, err = session(t).scene("^nothing", "")
	require.Error(t, err)
	wide := session(t)
	wide.lines = append(wide.lines, line{{from: 9 * time.Second, text: "in /some/uwf-demo-42/project"}})
	s, err = wide.scene("^in ", "")
	require.NoError(t, err)
	require.Equal(t, "in ~/project", s.lines[0].last(), "no directory of this machine is shown")
}

// The pictures are valid XML, contain everything shown, and end as the session did.
func TestPictures(t *testing.T) {
	t.Parallel()
	s, err := session(t).scene(`^\$ uwf`, "^after")
	require.NoError(t, err)
	moving, fixed := animate(s, 3), still(s, 2*time.Second, 3)
	for _, svg := range []string{moving, fixed} {
		d := xml.NewDecoder(strings.NewReader(svg))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
	}
	require.Contains(t, moving, "\u00a0\u00a0→ tool &lt;x&gt;</text>")
	require.Contains(t, moving, "a · 1s</text>")
	require.Contains(t, moving, "transform:translateY(-36px)", "five lines in a window of three")
	require.Equal(t, 5, strings.Count(moving, `class="end"`), "without motion the end is seen")
	require.Contains(t, fixed, "a · 0s</text>")
	require.NotContains(t, fixed, "tool", "it came later")
}
