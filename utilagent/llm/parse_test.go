package llm

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/fuzztest"
)

func TestParseArgs(t *testing.T) {
	t.Parallel()
	object := map[string]any{"path": "a.txt", "content": "x"}
	good := map[string]struct {
		raw  string
		want map[string]any
	}{
		"nothing":           {"", map[string]any{}},
		"null":              {"null", map[string]any{}},
		"object":            {`{"path":"a.txt","content":"x"}`, object},
		"trailing comma":    {`{"path":"a.txt","content":"x",}`, object},
		"double encoded":    {`"{\"path\":\"a.txt\",\"content\":\"x\"}"`, object},
		"fenced":            {"```json\n{\"path\":\"a.txt\",\"content\":\"x\"}\n```", object},
		"raw control":       {"{\"path\":\"a.txt\",\"content\":\"tab\there\"}", map[string]any{"path": "a.txt", "content": "tab\there"}},
		"comma in a string": {`{"path":"a,}","list":[1,2,],}`, map[string]any{"path": "a,}", "list": []any{1.0, 2.0}}},
	}
	for name, c := range good {
		got, err := ParseArgs(c.raw)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for name, raw := range map[string]string{
		"two objects":   `{"path":"a"}{"path":"b"}`,
		"cut":           `{"path":"a.txt","content":"cut`,
		"single quotes": `{'path': 'a.txt'}`,
		"a list":        `[1]`,
		"a number":      `5`,
		"prose":         `read the file`,
	} {
		_, err := ParseArgs(raw)
		require.Error(t, err, name)
	}
}

// Whatever a model sends as arguments, a JSON object is sent back, because servers' templates fail on
// anything else.
func FuzzParseArgs(f *testing.F) {
	for _, seed := range []string{"", "null", `{"a":1,}`, "```\n{}\n```", `"{\"a\":1}"`, "{\"a\":\"\t\"}", `{"a":`, `{}{}`, `[1]`, "{\"a\":\"\\\n\"}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		defer fuzztest.Bounded(t)()
		args, err := ParseArgs(raw)
		var sent map[string]any
		require.NoError(t, json.Unmarshal([]byte(wireArgs(raw)), &sent))
		require.NotNil(t, sent)
		if err == nil {
			require.Equal(t, args, sent)
		}
	})
}

// A stream means the same however it is split into packets, and no stream makes the parser panic.
func FuzzStream(f *testing.F) {
	files, err := filepath.Glob("testdata/endpoints/*.sse")
	require.NoError(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(b))
	}
	f.Add("data: {\ndata: \"choices\":[]}\n\n: comment\r\nevent: x\r\ndata:[DONE]\r\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":null},{\"function\":{\"arguments\":[]}}]}}]}\n")
	c := New(config.Endpoint{Model: "m", Stream: true}, Options{})
	used := ids{{Role: "assistant", ToolCalls: []ToolCall{{ID: "used"}}}}
	f.Fuzz(func(t *testing.T, stream string) {
		defer fuzztest.Bounded(t)()
		read := func(r io.Reader) (Response, error) {
			return c.readReply(bufio.NewReader(r), http.Header{}, used, nil)
		}
		whole, errWhole := read(strings.NewReader(stream))
		parts, errParts := read(iotest.OneByteReader(strings.NewReader(stream)))
		require.Equal(t, errWhole == nil, errParts == nil)
		require.Equal(t, whole, parts)
		seen := map[string]bool{"used": true}
		for _, call := range whole.Message.ToolCalls {
			require.False(t, seen[call.ID] || call.ID == "")
			seen[call.ID] = true
		}
	})
}

func TestEventsInEveryForm(t *testing.T) {
	t.Parallel()
	stream := ": comment\r\nevent: message\r\ndata: {\"a\":1}\r\n\r\n" + // the standard
		"data:{\"a\":2}\ndata: {\"a\":3}\n" + // no space, no empty line
		"data: {\ndata: \"a\": 4}\n\n" + // spans several lines
		"data: [DONE]\n\ndata: {\"a\":5}\n\n"
	var got []string
	done, err := readEvents(bufio.NewReader(strings.NewReader(stream)), func(data []byte) error {
		got = append(got, strings.Join(strings.Fields(string(data)), ""))
		return nil
	})
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":4}`}, got)

	_, err = readEvents(bufio.NewReader(strings.NewReader("data: {\"a\n\n")), func([]byte) error { return nil })
	require.ErrorIs(t, err, errBadEvent)
}

func TestThinkingIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string][2]string{
		"plain":                         {"plain", ""},
		"<think>hm</think>\n\n---\na":   {"---\na", "hm"},
		" \n<thinking>a</thinking>b":    {"b", "a"},
		"<think>never closed":           {"", "never closed"},
		"hm\n</think>\n---\na":          {"---\na", "hm"},
		"the tag </think> in a text":    {"the tag </think> in a text", ""},
		"---\na: b\n---\nx\n</think>\n": {"---\na: b\n---\nx\n</think>\n", ""},
	}
	for content, want := range cases {
		rest, thought := splitThinking(content)
		require.Equal(t, want, [2]string{rest, thought}, content)
	}
}

// The strictest endpoints reject a conversation in any other form.
func TestConversationIsPutIntoForm(t *testing.T) {
	t.Parallel()
	e := serve(t, says("ok"))
	messages := []Message{
		System("s"), User("one"), User("two"),
		{Role: "assistant"}, // empty
		{Role: "assistant", ToolCalls: []ToolCall{
			{ID: "a", Name: "read file!", Args: `{"x":1,}`}, {ID: "b", Name: "list_dir", Args: "cut {"}, {ID: "c", Name: ""},
		}},
		ToolResult("b", " "), ToolResult("a", "A"), ToolResult("stray", "S"),
	}
	_, err := e.client(&waits{}).Complete(t.Context(), Request{Messages: messages, Tools: []Tool{{Name: "list_dir"}}, NoCalls: true})
	require.NoError(t, err)
	got, err := json.Marshal(e.requests()[0]["messages"])
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"role":"system","content":"s"},
		{"role":"user","content":"one\n\ntwo"},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"a","type":"function","function":{"name":"read_file_","arguments":"{\"x\":1}"}},
			{"id":"b","type":"function","function":{"name":"list_dir","arguments":"{}"}},
			{"id":"c","type":"function","function":{"name":"unknown","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"A"},
		{"role":"tool","tool_call_id":"b","content":"(no output)"},
		{"role":"tool","tool_call_id":"c","content":"`+noResult+`"}
	]`, string(got))
	require.Equal(t, "none", e.requests()[0]["tool_choice"])
}
