//go:build agents

package agentstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// anthropic serves Anthropic's Messages API, with and without streaming.
func anthropic(m *model) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"input_tokens":100}`)
	})
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var ask struct {
			Model  string `json:"model"`
			Stream bool   `json:"stream"`
			Tools  []any  `json:"tools"`
		}
		if err != nil || json.Unmarshal(body, &ask) != nil {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		r := m.next(string(body), len(ask.Tools) > 0)
		if r.status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(r.status)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"api_error","message":%q}}`, r.text)
			return
		}
		message := anthropicMessage(ask.Model, r)
		if !ask.Stream {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(message)
			return
		}
		anthropicStream(w, message)
	})
	return mux
}

func anthropicMessage(model string, r reply) map[string]any {
	var content []map[string]any
	if r.text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.text})
	}
	stop := "end_turn"
	if r.run != "" {
		stop = "tool_use"
		content = append(content, map[string]any{
			"type": "tool_use", "id": "toolu_" + serial(), "name": "Bash",
			"input": map[string]any{"command": r.run, "description": "a command"},
		})
	}
	return map[string]any{
		"id": "msg_" + serial(), "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 120, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 1000, "output_tokens": 25},
	}
}

// anthropicStream sends a message as server-sent events.
func anthropicStream(w http.ResponseWriter, message map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		b, _ := json.Marshal(data) // maps of strings can always be encoded
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
		w.(http.Flusher).Flush()
	}
	start := map[string]any{}
	for k, v := range message {
		start[k] = v
	}
	start["content"], start["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": start})
	for i, block := range message["content"].([]map[string]any) {
		empty, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": block["text"]}
		if block["type"] == "tool_use" {
			input, _ := json.Marshal(block["input"])
			empty = map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
		}
		send("content_block_start", map[string]any{"index": i, "content_block": empty})
		send("content_block_delta", map[string]any{"index": i, "delta": delta})
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": message["stop_reason"], "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 25},
	})
	send("message_stop", map[string]any{})
}
