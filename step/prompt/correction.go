package prompt

import "github.com/united-workforce/uwf/util/fence"

// Correction asks, in the session of an answer that could not be used, for a
// valid one; why is the text of an extract error, which names the fields.
func Correction(why string, schema any) string {
	return join(
		"Your previous response did not contain valid YAML frontmatter matching the role schema:",
		fence.Text(fence.AnswerProblem, trim(why)),
		"Your work is done: do not repeat it and use no tools. "+
			"You MUST begin your response with a YAML frontmatter block (--- delimited). "+
			"Please output ONLY the corrected frontmatter block followed by your work.",
		formatBody(schema),
	)
}

// ValueCorrection is Correction for an agent that returns data itself.
func ValueCorrection(why string, schema any) string {
	return join(
		"The value that you returned does not satisfy the schema of your role:",
		fence.Text(fence.AnswerProblem, trim(why)),
		"Your work is done: do not repeat it. Return the corrected value, whole. The schema is:",
		"```json\n"+indented(schema)+"\n```",
	)
}

// Extraction asks a model that has not done the work to read the answer of one
// that has: the last resort when no valid frontmatter came. Heading is the
// role's extractPrompt, may be empty.
func Extraction(heading string, schema any, said string) (system, user string) {
	const rule = "You extract data from the answer of another agent. " +
		"Reply with exactly one JSON object that satisfies the JSON Schema below, and nothing else. " +
		"Use only what the answer says. If it does not say what a required field needs, reply with the JSON value null: " +
		"an invented value does more harm than a failed step."
	system = join(heading, rule, "```json\n"+indented(schema)+"\n```")
	return system, fence.Always(fence.Answer, trim(said))
}
