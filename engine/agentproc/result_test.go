package agentproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

func TestReadResult(t *testing.T) {
	t.Parallel()
	const hash = "0123456789ABC"
	tests := map[string]struct {
		stdout string
		want   protocol.Result
	}{
		"json": {
			`{"stepHash":"0123456789ABC","sessionId":"s","detailHash":"1123456789ABC","role":"planner","usage":{"turns":2,"inputTokens":3},"durable":true}` + "\n",
			protocol.Result{StepHash: hash, SessionID: "s", DetailHash: "1123456789ABC", Role: "planner", Usage: &protocol.Usage{Turns: 2, InputTokens: 3}, Durable: true},
		},
		"garbage behind it":          {"{\"stepHash\":\"0123456789ABC\"}\nbye\n\xff{\n", protocol.Result{StepHash: hash}},
		"an object that mentions it": {"{\"stepHash\":\"0123456789ABC\"}\n{\"note\":\"no stepHash here\"}\nbye\n", protocol.Result{StepHash: hash}},
		"an object that lacks it":    {"{\"stepHash\":\"0123456789ABC\"}\n{\"note\":\"no stepHash here\"}\n", protocol.Result{StepHash: hash}},
		"a rate limit as yaml": {"{error: limit, kind: rate-limit, retryAtMs: 1700000000000, repeated: 2}\n", protocol.Result{
			Error: "limit", Kind: protocol.FailedRateLimit, RetryAtMs: 1_700_000_000_000, Repeated: 2}},
		"an error behind talk": {"stepHash: 0123456789ABC\nmore talk\nerror: no key\nkind: machine\n", protocol.Result{
			Error: "no key", Kind: protocol.FailedMachine}},
		"an error of a step":            {"stepHash: 0123456789ABC\nerror: no key\n", protocol.Result{StepHash: hash, Error: "no key"}},
		"json after other output":       {"thinking…\n{\"a\":1}\n{\"stepHash\":\"0123456789ABC\"}\n", protocol.Result{StepHash: hash}},
		"json without a last newline":   {"x\n" + `{"stepHash":"0123456789ABC"}`, protocol.Result{StepHash: hash}},
		"blank lines and CRLF after it": {"{\"stepHash\":\"0123456789ABC\"}\r\n\r\n  \n\t\n", protocol.Result{StepHash: hash}},
		"unknown fields, the original's": {
			`{"stepHash":"0123456789ABC","frontmatter":{"a":1},"body":"…","startedAtMs":1,"isError":false,"errorMessage":null}`,
			protocol.Result{StepHash: hash},
		},
		"malformed figures are not shown":  {`{"stepHash":"0123456789ABC","usage":{"turns":"many"},"sessionId":7}`, protocol.Result{StepHash: hash}},
		"usage null":                       {`{"stepHash":"0123456789ABC","usage":null}`, protocol.Result{StepHash: hash}},
		"lower case and look-alikes":       {`{"stepHash":"o123456789abc"}`, protocol.Result{StepHash: hash}},
		"twice the same step":              {`{"stepHash":"0123456789ABC","stepHash":"0123456789ABC"}`, protocol.Result{StepHash: hash}},
		"bare hash":                        {"done\n0123456789ABC\n", protocol.Result{StepHash: hash}},
		"bare hash, lower case":            {"0i23456789abc", protocol.Result{StepHash: hash}},
		"yaml flow":                        {"{stepHash: 0123456789ABC, sessionId: a b, durable: true}\n", protocol.Result{StepHash: hash, SessionID: "a b", Durable: true}},
		"yaml flow, hash of digits only":   {"{stepHash: 1234567890123, sessionId: 42}\n", protocol.Result{StepHash: "1234567890123", SessionID: "42"}},
		"yaml flow, hash like a float":     {"{stepHash: 1234567890E12}\n", protocol.Result{StepHash: "1234567890E12"}},
		"yaml block":                       {"log line\nstepHash: 0123456789ABC\nsessionId: \"007\"\nusage:\n  turns: 4\n", protocol.Result{StepHash: hash, SessionID: "007", Usage: &protocol.Usage{Turns: 4}}},
		"yaml block, a number sign":        {"stepHash: 0123456789ABC\nsessionId: run #42\n", protocol.Result{StepHash: hash, SessionID: "run #42"}},
		"yaml block, the last one":         {"stepHash: 5555555555555\nmore talk\nstepHash: 0123456789ABC\nrole: r\n", protocol.Result{StepHash: hash, Role: "r"}},
		"an error":                         {`{"error":"no key","rawHash":"0123456789ABC"}`, protocol.Result{Error: "no key", RawHash: hash}},
		"an error as yaml":                 {"error: no key\nrawHash: 0123456789ABC\n", protocol.Result{Error: "no key", RawHash: hash}},
		"an error that plays tricks on us": {"{\"error\":\"a\\u001b[31mb\\u0007\"}", protocol.Result{Error: "ab"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadResult(runDirWith(t, test.stdout))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestReadResultErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stdout string }{
		"nothing":                              {""},
		"only blank lines":                     {"\n \n\r\n"},
		"prose":                                {"I am done.\n"},
		"a damaged result behind a whole one":  {"{\"stepHash\":\"0123456789ABC\"}\n{\"stepHash:\"1123456789ABC\"}\n"},
		"json without stepHash":                {`{"sessionId":"s"}`},
		"a turn is no result":                  {`{"uwf":"turn","hash":"0123456789ABC"}`},
		"stepHash is not a hash":               {`{"stepHash":"nope"}`},
		"stepHash is a number":                 {`{"stepHash":12}`},
		"cut off":                              {`{"stepHash":"01234`},
		"a hash too long for 64 bits":          {"ZZZZZZZZZZZZZ"},
		"control characters are not passed on": {"a\x1b[2Jb\x00c\x07"},
		"not UTF-8":                            {"\xff\xfe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadResult(runDirWith(t, test.stdout))
			var wrong *ResultError
			require.ErrorAs(t, err, &wrong)
			prosetest.Error(t, err)
		})
	}
}

func TestReadResultWithoutOutputFile(t *testing.T) {
	t.Parallel()
	_, err := ReadResult(t.TempDir())
	prosetest.Error(t, err)
}

// Lines may cross the chunks in which a file is read backwards.
func TestReadResultBehindAnyAmountOfOutput(t *testing.T) {
	t.Parallel()
	line := `{"stepHash":"0123456789ABC"}`
	for _, before := range []int{chunk - 30, chunk - len(line) - 1, chunk - len(line), chunk - 1, chunk, chunk + 1, 3 * chunk} {
		for _, blank := range []int{0, 1, chunk - 1, chunk, 2*chunk + 1} {
			out := strings.Repeat("x", before) + "\n" + line + strings.Repeat("\n", blank)
			got, err := ReadResult(runDirWith(t, out))
			require.NoError(t, err, "%d bytes before, %d after", before, blank)
			require.Equal(t, protocol.Hash("0123456789ABC"), got.StepHash)
		}
	}
}

// The answer's body may be part of the line, as with the original agents.
func TestReadResultTakesALongLine(t *testing.T) {
	t.Parallel()
	got, err := ReadResult(runDirWith(t, `{"body":"`+strings.Repeat("b", 3<<20)+`","stepHash":"0123456789ABC"}`))
	require.NoError(t, err)
	require.Equal(t, protocol.Hash("0123456789ABC"), got.StepHash)

	_, err = ReadResult(runDirWith(t, "{"+strings.Repeat("b", maxLine+1)))
	prosetest.Error(t, err)
	require.Less(t, len(err.Error()), 2000)
}

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	turn := func(h string) string { return `{"uwf":"turn","hash":"` + h + `"}` }
	input := strings.Join([]string{
		"hello", turn("0123456789ABC"), turn("not a hash"), `{"uwf":"other","hash":"0123456789ABC"}`,
		`{"hash":"0123456789ABC"}`, "{" + strings.Repeat("x", 2*maxAnnouncement), "  " + turn("1123456789ABC") + "\r",
		strings.Repeat(" ", maxAnnouncement) + turn("3123456789ABC"), turn("2123456789ABC"), turn("4123456789ABC"),
	}, "\n")
	want := []protocol.Hash{"0123456789ABC", "1123456789ABC", "2123456789ABC"} // the last line is incomplete

	for _, size := range []int{1, 2, 7, 64, len(input)} {
		var got []protocol.Hash
		a := announcements{report: func(l protocol.TurnLine) { got = append(got, l.Hash) }}
		for rest := []byte(input); len(rest) > 0; {
			n := min(size, len(rest))
			written, err := a.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		require.Equal(t, want, got, "written %d bytes at a time", size)
		require.LessOrEqual(t, cap(a.line), 4*maxAnnouncement, "what is no announcement is not held")
	}
}

func TestAnnounced(t *testing.T) {
	t.Parallel()
	reported, err := Announced(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Zero(t, reported, "a run that has not begun")
	reported, err = Announced(t.Context(), runDirWith(t, `{"uwf":"writing","hash":"0123456789ABC"}
{"uwf":"turn","hash":"1123456789ABC"}
{"uwf":"request","hash":"2123456789ABC"}
`))
	require.NoError(t, err)
	require.Equal(t, Reported{Turns: []protocol.Hash{"1123456789ABC"}}, reported, "what was being written is written")
	reported, err = Announced(t.Context(), runDirWith(t, `{"uwf":"turn","hash":"1123456789ABC"}
{"uwf":"writing","hash":"2123456789ABC"}
{"uwf":"writing","hash":"3123456789ABC"}
`))
	require.NoError(t, err)
	require.Equal(t, Reported{Turns: []protocol.Hash{"1123456789ABC"}, Writing: "3123456789ABC"}, reported)
}

func TestStderrTail(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stderr, want string }{
		"nothing":       {"", ""},
		"short":         {"oh\nno\n", "oh\nno"},
		"colours":       {"\x1b[1;31merror:\x1b[0m bad\x1b]0;title\x07\n", "error: bad"},
		"progress bars": {"10%\r20%\r30%\n", "10%\n20%\n30%"},
		"right to left": {"a\u202eb", "ab"},
		"not UTF-8":     {"a\xffb", "a\uFFFDb"},
		"many lines":    {strings.Repeat("x\n", 50) + "end", strings.Repeat("x\n", tailLines-1) + "end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, runfiles.StderrFile), []byte(test.stderr), 0o600))
			require.Equal(t, test.want, stderrTail(dir))
		})
	}
	long := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(long, runfiles.StderrFile), bytes.Repeat([]byte("0123456789\n"), 1<<20), 0o600))
	require.LessOrEqual(t, len(stderrTail(long)), tailBytes)
	require.Equal(t, "", stderrTail(filepath.Join(long, "none")))
}

func FuzzReadResult(f *testing.F) {
	for _, seed := range []string{"", "x", `{"stepHash":"0123456789ABC"}`, "stepHash: 0123456789ABC\n", "{stepHash: 0123456789ABC}", "0123456789ABC", "error: x", "{", "stepHash:\n- [", "\r\n\x00"} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, stdout []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, runfiles.StdoutFile), stdout, 0o600))
		r, err := ReadResult(dir)
		if err != nil {
			require.IsType(t, &ResultError{}, err)
			return
		}
		require.True(t, r.StepHash.Valid() || r.Error != "", "a result names a step or an error")
	})
}

func runDirWith(t *testing.T, stdout string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, runfiles.StdoutFile), []byte(stdout), 0o600))
	return dir
}

// A sparse file can be larger than any disk.
func TestOutputWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := runDirWith(t, "")
	require.NoError(t, os.Truncate(filepath.Join(dir, runfiles.StdoutFile), 200<<30))
	require.NoError(t, os.WriteFile(filepath.Join(dir, runfiles.StderrFile), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(dir, runfiles.StderrFile), 200<<30))
	_, err := ReadResult(dir)
	prosetest.Error(t, err)
	reported, err := Announced(t.Context(), dir)
	require.NoError(t, err)
	require.Zero(t, reported)
	require.Empty(t, stderrTail(dir))

	ended := make(chan struct{})
	close(ended)
	follow(dir, ended, func(protocol.TurnLine) {})
}
