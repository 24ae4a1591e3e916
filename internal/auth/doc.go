// Package auth decides who may do what. It is pure: rules and a question in, an
// answer and its reason out, and no clock, lock, file or connection anywhere.
//
//	principal.go  who someone is, and from where
//	kinds.go      resources, patterns, operations and permissions, with Kafka's numbers
//	operations.go sets of operations, and what implies what
//	rule.go       an ACL rule, what makes one nonsense, its form as a record
//	filter.go     which rules DescribeAcls and DeleteAcls mean
//	index.go      all rules, made to be asked for rights
//	edit.go       the next index, which shares with the last what stayed the same
//	memo.go       the last answers of an index to a connection
//	decide.go     which rule decides; whether any resource of a type is allowed
//	table.go      the patterns of one principal, in order
//	why.go        a decision in one sentence, and the command that would change it
//	needs.go      the rights that each API key needs
//	x500.go       the name of a certificate as Java writes it
//	mapping.go    ssl.principal.mapping.rules; expression.go its regular expressions, casing.go L and U
//
// An Index never changes, so connections read it without a lock and may remember
// its answers for as long as it is the newest, which is what a Memo does.
//
//	DENY of a matching rule            no
//	ALLOW of a matching rule           yes
//	rules for the resource, not these  no
//	no rule for the resource           allow.everyone.if.no.acl.found
package auth
