package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

const whatItIs = "This is the scripted endpoint of the uwf demo. No model answers here.\n"

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", complete)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whatItIs) })
	return mux
}

// complete answers a request with the script's next turn.
func complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		refuse(w, err)
		return
	}
	c, err := read(req)
	if err != nil {
		refuse(w, err)
		return
	}
	answer, err := next(c)
	if err != nil {
		refuse(w, err)
		return
	}
	usage := map[string]any{"prompt_tokens": len(body) / 4, "completion_tokens": len(answer.text)/4 + 20*len(answer.calls)}
	if req.Stream {
		stream(w, req.Model, answer, usage)
		return
	}
	whole(w, req.Model, answer, usage)
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": err.Error(), "type": "invalid_request_error"}})
}

// stream sends the answer in pieces, as real endpoints do: the text word by word, and arguments split within
// strings.
func stream(w http.ResponseWriter, model string, a reply, usage map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(chunk map[string]any) {
		chunk["model"] = model
		b, err := json.Marshal(chunk)
		if err != nil {
			return // maps of strings and numbers always encode
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	delta := func(d map[string]any) {
		send(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d}}})
	}
	for _, piece := range pieces(a.text, 40) {
		delta(map[string]any{"content": piece})
	}
	for i, call := range a.calls {
		delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": callID(i), "type": "function", "function": map[string]any{"name": call.name, "arguments": ""},
		}}})
		for _, piece := range pieces(call.arguments(), 60) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}})
		}
	}
	send(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": a.finish()}}})
	send(map[string]any{"choices": []any{}, "usage": usage})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// whole sends the answer at once.
func whole(w http.ResponseWriter, model string, a reply, usage map[string]any) {
	message := map[string]any{"role": "assistant", "content": a.text}
	var calls []any
	for i, call := range a.calls {
		calls = append(calls, map[string]any{
			"id": callID(i), "type": "function", "function": map[string]any{"name": call.name, "arguments": call.arguments()},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": model, "usage": usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": a.finish()}},
	})
}

func (a reply) finish() string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (c toolCall) arguments() string {
	b, err := json.Marshal(c.args)
	if err != nil {
		return "{}" // maps of strings always encode
	}
	return string(b)
}

// callID restarts at zero in every answer, as with some real endpoints.
func callID(i int) string { return fmt.Sprintf("call_%d", i) }

// pieces splits a text into parts of n characters.
func pieces(s string, n int) []string {
	var list []string
	for r := []rune(s); len(r) > 0; r = r[min(n, len(r)):] {
		list = append(list, string(r[:min(n, len(r))]))
	}
	return list
}
