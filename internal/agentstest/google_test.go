//go:build agents

package agentstest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// google serves Google's generateContent, with and without streaming.
func google(m *model) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1beta/models/{call}", func(w http.ResponseWriter, req *http.Request) {
		var ask struct {
			Tools []struct {
				FunctionDeclarations []struct {
					Name                 string         `json:"name"`
					ParametersJsonSchema map[string]any `json:"parametersJsonSchema"`
					Parameters           map[string]any `json:"parameters"`
				} `json:"functionDeclarations"`
			} `json:"tools"`
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || json.Unmarshal(body, &ask) != nil {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		var offers []offer
		for _, t := range ask.Tools {
			for _, f := range t.FunctionDeclarations {
				if f.ParametersJsonSchema == nil {
					f.ParametersJsonSchema = f.Parameters
				}
				offers = append(offers, offer{f.Name, f.ParametersJsonSchema})
			}
		}
		shell, _ := shellAmong(offers)
		r := m.next(string(body), len(offers) > 0)
		if r.status != 0 {
			fail(w, r)
			return
		}
		if content := content(r, shell); strings.Contains(req.PathValue("call"), "stream") {
			send(w, content)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content)
		}
	})
	return mux
}

func content(r reply, shell offer) map[string]any {
	var parts []any
	if r.text != "" {
		parts = append(parts, map[string]any{"text": r.text})
	}
	if r.run != "" {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"name": shell.name, "args": shell.args(r.run)}})
	}
	return map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": parts}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1150, "cachedContentTokenCount": 1000, "candidatesTokenCount": 25, "totalTokenCount": 1175},
		"modelVersion":  "scripted",
	}
}
