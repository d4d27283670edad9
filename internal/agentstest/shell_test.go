//go:build agents

package agentstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// offer is a program's shell tool, as declared to the model.
type offer struct {
	name   string
	schema map[string]any // of its arguments
}

func shellAmong(offers []offer) (offer, bool) {
	for _, o := range offers {
		for _, part := range []string{"bash", "shell", "exec_command"} {
			if strings.Contains(o.name, part) {
				return o, true
			}
		}
	}
	return offer{}, false
}

// args returns arguments that run a command: programs name them differently.
func (o offer) args(command string) map[string]any {
	properties, _ := o.schema["properties"].(map[string]any)
	args := map[string]any{}
	for name := range properties {
		switch name {
		case "command", "cmd":
			args[name] = command
		case "description":
			args[name] = "a command"
		}
	}
	return args
}

// fail responds with an error in OpenAI's format, which Google's clients understand as well.
func fail(w http.ResponseWriter, r reply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": r.status, "message": r.text, "status": "SCRIPTED", "type": "scripted"}})
}

// send sends server-sent events.
func send(w http.ResponseWriter, events ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if kind, ok := event["type"]; ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		data, _ := json.Marshal(event) // maps of strings can always be encoded
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}
