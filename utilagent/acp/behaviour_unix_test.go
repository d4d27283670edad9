//go:build unix

package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prompt plays a prompt.
func (f *fake) prompt(m fakeMessage, behaviour string) {
	f.id = m.Params.SessionID
	switch behaviour {
	case "hang", "hang-deaf":
		f.say("I think about it.")
		if behaviour == "hang-deaf" {
			f.ignoreSignals()
			f.drain()
		}
		f.awaitCancel(m)
	case "dies":
		f.say("I begin.")
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(3)
	case "flood":
		f.flood(m)
	case "long-line":
		f.longLine(m)
	case "malformed":
		f.malformed(m)
	case "orphan":
		f.child()
		f.done(m)
	case "error":
		f.promptError(m)
	case "max-turns":
		f.say("I looked around.")
		f.answer(m, `{"stopReason":"max_turn_requests"}`)
	case "refuses":
		f.answer(m, `{"stopReason":"refusal"}`)
	case "forgets":
		if f.how == "resume" {
			f.answer(m, `{"stopReason":"refusal"}`)
			return
		}
		f.done(m)
	case "late-answer":
		f.answer(m, `{"stopReason":"end_turn"}`)
		time.Sleep(50 * time.Millisecond)
		f.say(good)
	case "nothing":
		f.answer(m, `{"stopReason":"end_turn"}`)
	case "bad-first":
		f.badFirst(m)
	case "once-hang":
		if f.count("prompts") == 1 {
			f.say("I begin.")
			f.awaitCancel(m)
			return
		}
		f.done(m)
	case "permission":
		f.permission(m)
	case "files":
		f.files(m)
	case "terminal":
		f.ask("terminal/create", `{"command":"echo"}`)
		f.done(m)
	case "tools":
		f.tools(m)
	case "other-session":
		f.id = "somewhere-else"
		f.say(good)
		f.answer(m, `{"stopReason":"end_turn"}`)
	default:
		f.done(m)
	}
}

// awaitCancel answers the prompt when it is cancelled.
func (f *fake) awaitCancel(prompt fakeMessage) {
	for {
		if m := f.read(); m.Method == "session/cancel" {
			f.note("cancelled")
			f.answer(prompt, `{"stopReason":"cancelled"}`)
			return
		}
	}
}

// flood sends 100 MB in small pieces before the answer.
func (f *fake) flood(m fakeMessage) {
	const size = 100 << 20
	line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm hm hm hm hm hm hm hm "}}}}`+"\n", f.id)
	for n := 0; n < size; n += len(line) {
		f.out.WriteString(line)
	}
	f.done(m)
}

// longLine prints one line of 100 MB.
func (f *fake) longLine(m fakeMessage) {
	f.out.WriteString(`{"jsonrpc":"2.0","method":"session/update","params":"`)
	piece := strings.Repeat("x", 1<<20)
	for range 100 {
		f.out.WriteString(piece)
	}
	f.print(`"}`)
	f.done(m)
}

// malformed mixes invalid lines into the stream.
func (f *fake) malformed(m fakeMessage) {
	for _, line := range []string{
		"", "Loaded 3 plugins", `{"jsonrpc":"2.0","method":`, `[]`, `{}`, `{"id":99,"result":{}}`, `{"id":99,"result":{}}`,
		`{"jsonrpc":"2.0","method":17}`, `{"method":"session/update","params":[1,2]}`, `{"method":"session/update"}`,
		`{"method":"session/update","params":{"sessionId":"` + f.id + `","update":{"sessionUpdate":7}}}`,
		`{"method":"session/update","params":{"sessionId":"` + f.id + `","update":{"sessionUpdate":"agent_message_chunk","content":"text"}}}`,
		`{"method":"session/update","params":{"sessionId":"` + f.id + `","update":{"sessionUpdate":"tool_call","toolCallId":5,"title":["x"]}}}`,
		`{"method":"_vendor/thing","params":null}`, "\x00\xff\xfe", "\uFEFF{\"method\":\"x\"}", strings.Repeat(`{"a":`, 20000),
	} {
		f.print("%s", line)
	}
	for range 2 { // a duplicate ID, an unknown method
		f.print(`{"jsonrpc":"2.0","id":7,"method":"_vendor/ask","params":{}}`)
		reply := f.read()
		f.note("reply %s %s", reply.ID, reply.Error)
	}
	f.print(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}`)
	f.note("reply %s", f.read().ID)
	f.done(m)
}

func (f *fake) promptError(m fakeMessage) {
	code, text := 0, ""
	_, _ = fmt.Sscan(f.args[1], &code) // on failure 0, which is an error as well
	text = strings.Join(f.args[2:], " ")
	f.fail(m, code, text)
}

// badFirst answers without the required output at first, and correctly once corrected.
func (f *fake) badFirst(m fakeMessage) {
	if f.count("answers") == 1 {
		f.say("I forgot the frontmatter.")
		f.tell(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.25,"currency":"USD"}}`)
		f.answer(m, `{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":1,"totalTokens":11}}`)
		return
	}
	f.tell(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}`)
	f.say(good)
	f.answer(m, `{"stopReason":"end_turn","usage":{"inputTokens":20,"outputTokens":2,"totalTokens":22}}`)
}

// permission asks for everything in its arguments: kind, path, options.
func (f *fake) permission(m fakeMessage) {
	for i, kind := range []string{"read", "edit", "execute", "other", "edit", "never"} {
		id := fmt.Sprintf("call-%d", i)
		path := filepath.Join(cwd(), "a.txt")
		if i == 4 {
			path = filepath.Join(cwd(), "..", "outside.txt")
		}
		call := fmt.Sprintf(`"toolCallId":%q,"title":"do it","kind":%q,"locations":[{"path":%q}]`, id, kind, path)
		options := `[{"optionId":"no","kind":"reject_once"},{"optionId":"ever","kind":"allow_always"},{"optionId":"yes","kind":"allow_once"}]`
		if kind == "never" {
			options = `[{"optionId":"x","kind":"sometimes"}]`
		}
		f.tell(`{"sessionUpdate":"tool_call","status":"pending",` + call + `}`)
		reply := f.ask("session/request_permission", fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":%q},"options":%s}`, f.id, id, options))
		f.note("%d %s: %s", i, kind, outcome(reply.Result))
		f.tell(fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"completed"}`, id))
	}
	f.note("no options: %s", outcome(f.ask("session/request_permission", `{"toolCall":{},"options":[]}`).Result))
	f.note("nothing: %s", outcome(f.ask("session/request_permission", `null`).Result))
	f.done(m)
}

func outcome(result json.RawMessage) string {
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(result, &r) // otherwise it is empty
	return strings.TrimSpace(r.Outcome.Outcome + " " + r.Outcome.OptionID)
}

func cwd() string {
	dir, err := os.Getwd()
	if err != nil {
		return err.Error()
	}
	return dir
}

// files asks for files inside and outside.
func (f *fake) files(m fakeMessage) {
	for _, path := range []string{"a.txt", "../outside.txt", "/etc/hostname", "link", "none.txt", "pipe", "large.txt"} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd(), path)
		}
		f.read1(path, "")
	}
	f.read1(filepath.Join(cwd(), "large.txt"), `,"line":2,"limit":2`)
	for _, path := range []string{"new/b.txt", "../outside.txt", "link", "up/c.txt"} {
		reply := f.ask("fs/write_text_file", fmt.Sprintf(`{"path":%q,"content":"written"}`, filepath.Join(cwd(), path)))
		f.note("write %s: %v", path, reply.Error == nil)
	}
	f.done(m)
}

func (f *fake) read1(path, more string) {
	reply := f.ask("fs/read_text_file", fmt.Sprintf(`{"path":%q%s}`, path, more))
	f.note("read %s: %v", filepath.Base(path), reply.Error == nil)
}

// tools calls tools, two at a time, with arguments that come late.
func (f *fake) tools(m fakeMessage) {
	f.tell(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me see."}}`)
	f.say("I look.")
	f.tell(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"bash","kind":"execute","status":"pending","rawInput":{}}`)
	f.tell(`{"sessionUpdate":"tool_call","toolCallId":"2","title":"Read a.txt","kind":"read","status":"pending"}`)
	f.tell(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress","title":"ls","rawInput":{"command":"ls"}}`)
	f.tell(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no such file"}}]}`)
	f.tell(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"output":"a.txt\n","exit":0}}`)
	f.tell(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"output":"again"}}`)
	f.done(m)
}
