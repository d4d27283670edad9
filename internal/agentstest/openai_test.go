//go:build agents

package agentstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// responses serves OpenAI's responses API, streamed.
func responses(m *model) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, req *http.Request) {
		var ask struct {
			Tools []struct {
				Name       string         `json:"name"`
				Parameters map[string]any `json:"parameters"`
			} `json:"tools"`
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || json.Unmarshal(body, &ask) != nil {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		var offers []offer
		for _, t := range ask.Tools {
			offers = append(offers, offer{t.Name, t.Parameters})
		}
		shell, tools := shellAmong(offers)
		if r := m.next(string(body), tools); r.status != 0 {
			fail(w, r)
		} else {
			send(w, responseEvents(r, shell)...)
		}
	})
	return mux
}

func responseEvents(r reply, shell offer) []map[string]any {
	id := "resp_" + serial()
	events := []map[string]any{{"type": "response.created", "response": map[string]any{"id": id}}}
	if r.text != "" {
		events = append(events, map[string]any{"type": "response.output_item.done", "output_index": 0, "item": map[string]any{
			"type": "message", "id": "msg_" + serial(), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": r.text, "annotations": []any{}}},
		}})
	}
	if r.run != "" {
		args, _ := json.Marshal(shell.args(r.run))
		events = append(events, map[string]any{"type": "response.output_item.done", "output_index": 1, "item": map[string]any{
			"type": "function_call", "id": "fc_" + serial(), "call_id": "call_" + serial(), "name": shell.name, "arguments": string(args), "status": "completed",
		}})
	}
	return append(events, map[string]any{"type": "response.completed", "response": map[string]any{"id": id, "usage": map[string]any{
		"input_tokens": 1150, "input_tokens_details": map[string]any{"cached_tokens": 1000},
		"output_tokens": 25, "output_tokens_details": map[string]any{"reasoning_tokens": 5}, "total_tokens": 1175,
	}}})
}

// chat serves OpenAI's chat completions API, streamed.
func chat(m *model) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, req *http.Request) {
		var ask struct {
			Tools []struct {
				Function struct {
					Name       string         `json:"name"`
					Parameters map[string]any `json:"parameters"`
				} `json:"function"`
			} `json:"tools"`
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || json.Unmarshal(body, &ask) != nil {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		var offers []offer
		for _, t := range ask.Tools {
			offers = append(offers, offer{t.Function.Name, t.Function.Parameters})
		}
		shell, _ := shellAmong(offers)
		if r := m.next(string(body), len(offers) > 0); r.status != 0 {
			fail(w, r)
		} else {
			send(w, chunks(r, shell)...)
			fmt.Fprint(w, "data: [DONE]\n\n")
		}
	})
	return mux
}

func chunks(r reply, shell offer) []map[string]any {
	id := "chatcmpl-" + serial()
	chunk := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"id": id, "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	list := []map[string]any{chunk(map[string]any{"role": "assistant", "content": r.text}, nil)}
	finish := "stop"
	if r.run != "" {
		finish = "tool_calls"
		args, _ := json.Marshal(shell.args(r.run))
		list = append(list, chunk(map[string]any{"tool_calls": []any{map[string]any{
			"index": 0, "id": "call_" + serial(), "type": "function",
			"function": map[string]any{"name": shell.name, "arguments": string(args)},
		}}}, nil))
	}
	last := chunk(map[string]any{}, finish)
	last["usage"] = map[string]any{
		"prompt_tokens": 1150, "prompt_tokens_details": map[string]any{"cached_tokens": 1000}, "completion_tokens": 25, "total_tokens": 1175,
	}
	return append(list, last)
}
