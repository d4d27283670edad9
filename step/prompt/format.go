package prompt

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

const scopeSentence = "Focus exclusively on YOUR role's deliverable. Do not perform actions outside your role's scope."

// FormatInstruction says how an answer that satisfies the schema begins: an
// example block, the fields, and the way to suspend. A schema whose variants
// differ in one constant (a oneOf over $status) gets an example for each.
func FormatInstruction(schema any) string {
	return join("## Deliverable Format", formatBody(schema), scopeSentence)
}

func formatBody(schema any) string {
	if protocol.IsAnswerSchema(schema) {
		return join("Your whole response, as plain text or Markdown, is handed to the next role. It needs no frontmatter block.", suspendBody)
	}
	if key, variants := discriminated(schema); key != "" {
		return join(variantsBody(key, variants), suspendBody)
	}
	fields := fieldsOf(schema)
	return join(
		"Your response MUST begin with a YAML frontmatter block followed by your markdown work:",
		example(fields),
		"The frontmatter is the **primary deliverable** — the engine reads it directly.\n"+
			"Your meta output must satisfy these fields:",
		fieldList(fields),
		"Output ONLY the fields listed above. Do not add extra fields that are not specified in the schema.",
		suspendBody,
	)
}

func variantsBody(key string, variants []variant) string {
	parts := []string{
		"Your response MUST begin with a YAML frontmatter block followed by your markdown work.",
		"Choose ONE of the following variants based on your outcome:",
	}
	for _, v := range variants {
		parts = append(parts,
			fmt.Sprintf("### When `%s: %s`", key, literal(v.value)),
			example(v.fields),
			"Fields:\n"+fieldList(v.fields))
	}
	return join(append(parts,
		"The frontmatter is the **primary deliverable** — the engine reads it directly.",
		"Output ONLY the fields listed for your chosen variant. Do not add extra fields that are not specified in the schema.",
	)...)
}

// The reason is quoted: unquoted, one with a colon in it was not YAML, and the
// question to the person was lost.
const suspendBody = "### When you cannot go on without a person\n\n" +
	"If only a person can answer or decide, do not guess. Begin with this block instead, and the thread waits for the answer:\n\n" +
	"```\n---\n" + protocol.StatusKey + ": " + protocol.SuspendNode + "\n" +
	"reason: \"<what you need, from whom, and why>\"\n---\n```"

// example is the frontmatter block as the agent should write it.
func example(fields []field) string {
	lines := []string{"```", "---"}
	for _, f := range fields {
		lines = append(lines, f.example("", 0)...)
	}
	lines = append(lines, "---", "", "... your markdown work here ...", "```")
	return strings.Join(lines, "\n")
}

// fieldList names each field with what its value must satisfy.
func fieldList(fields []field) string {
	if len(fields) == 0 {
		return "  (the schema names no fields; `$status` may say how it went)"
	}
	var lines []string
	for _, f := range fields {
		line := "  - `" + oneLine(f.name) + "`"
		if f.required {
			line += " (required)"
		}
		if d := f.describe(); d != "" {
			line += ": " + d
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
