package config

// mechanisms are those of SASL, as in sasl.enabled.mechanisms.
var mechanisms = []string{"SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER"}

// authorizers are the names of Kafka's own authorizers, whose rules ours follows. Those of
// others decide by rules that we do not know, so they are refused.
var authorizers = []string{
	"", "muster", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
	"kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer",
}

// tokenValidators are Kafka's own class for tokens, under its names of all versions. It does
// what the settings sasl.oauthbearer.* say, and so do we.
var tokenValidators = []string{
	"", "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
	"org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
}

// storeTypes are the forms of key stores and trust stores.
var storeTypes = []string{"PEM", "PKCS12", "JKS"}

// securityDefs are the settings about who clients are, what they may do, and how much.
var securityDefs = []Def{
	{Name: "sasl.enabled.mechanisms", Type: List, Default: "SCRAM-SHA-256,SCRAM-SHA-512", OneOf: mechanisms, Static: true, Scope: Listener, Doc: "The mechanisms by which clients log in to listeners with SASL."},
	{Name: "sasl.jaas.config", Type: Password, Static: true, Scope: Mechanism, Doc: "A JAAS line, of which PLAIN takes the passwords of its user_<name> options."},
	{Name: "sasl.server.max.receive.size", Type: Int, Default: "524288", Min: 1024, Max: 1<<31 - 1, Static: true, Scope: Listener, Doc: "The largest request that is read from a client that has not logged in."},
	{Name: "sasl.server.callback.handler.class", Type: Class, OneOf: tokenValidators, Static: true, Inert: true, Scope: Mechanism, Doc: "Accepted for Kafka's configuration files if it names Kafka's own class for tokens, as which muster behaves."},
	{Name: "sasl.mechanism.inter.broker.protocol", Type: String, Static: true, Inert: true, Scope: Listener, Doc: "Accepted for Kafka's configuration files; brokers of muster log in to each other by a secret of their cluster."},
	{Name: "connections.max.reauth.ms", Type: Long, Default: "0", Min: 0, Max: maxLong, Static: true, Scope: Mechanism, Doc: "How long a session lasts before its client must log in again (KIP-368); 0 for as long as its credential lasts."},
	{Name: "connection.failed.authentication.delay.ms", Type: Int, Default: "100", Min: 0, Max: 10000, Static: true, Doc: "How long the answer to a failed login is held back."},

	{Name: "sasl.oauthbearer.jwks.endpoint.url", Type: String, Static: true, Scope: Mechanism, Doc: "Where the keys are with which tokens are signed: https://, http:// or file://."},
	{Name: "sasl.oauthbearer.jwks.endpoint.refresh.ms", Type: Long, Default: "3600000", Min: 1, Static: true, Scope: Mechanism, Doc: "How often those keys are fetched again."},
	{Name: "sasl.oauthbearer.expected.issuer", Type: String, Static: true, Scope: Mechanism, Doc: "The issuer that a token must name; if not set, any issuer whose keys these are."},
	{Name: "sasl.oauthbearer.expected.audience", Type: List, Static: true, Scope: Mechanism, Doc: "Whom a token must be for, one of these; if not set, tokens that name an audience are refused."},
	{Name: "sasl.oauthbearer.clock.skew.seconds", Type: Int, Default: "30", Min: 0, Max: 86400, Static: true, Scope: Mechanism, Doc: "How far the clock of the issuer may be off."},
	{Name: "sasl.oauthbearer.sub.claim.name", Type: String, Default: "sub", Static: true, Scope: Mechanism, Doc: "The claim that holds the name of the user."},
	{Name: "sasl.oauthbearer.scope.claim.name", Type: String, Default: "scope", Static: true, Scope: Mechanism, Doc: "The claim that holds the scopes."},
	{Name: "muster.oauthbearer.principal.mapping.rules", Type: String, Default: "DEFAULT", Static: true, Scope: Mechanism, Doc: "How the name in a token becomes that of a user: rules as in ssl.principal.mapping.rules. A token that no rule matches is refused."},
	{Name: "muster.oauthbearer.groups.claim", Type: String, Static: true, Scope: Mechanism, Doc: "The claim that holds the groups of the user, a list of strings or a string of words; rules may name them as Group:NAME. None if not set."},
	{Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Type: Long, Default: "100", Static: true, Inert: true, Scope: Mechanism, Doc: "Accepted for Kafka's configuration files; has no effect."},
	{Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Type: Long, Default: "10000", Static: true, Inert: true, Scope: Mechanism, Doc: "Accepted for Kafka's configuration files; has no effect."},
	{Name: "sasl.oauthbearer.token.endpoint.url", Type: String, Static: true, Inert: true, Scope: Mechanism, Doc: "Accepted for Kafka's configuration files; only clients ask for tokens."},

	{Name: "ssl.keystore.type", Type: String, Default: "PEM", OneOf: storeTypes, Static: true, Scope: Listener, Doc: "The form of the key store. The file itself tells which of these it is."},
	{Name: "ssl.keystore.location", Type: String, Static: true, Scope: Listener, Doc: "A file with the server's private key and its certificate chain: PEM, PKCS12 or JKS. It is read again when it changes."},
	{Name: "ssl.keystore.password", Type: Password, Static: true, Scope: Listener, Doc: "The password of the key store, if that is PKCS12 or JKS."},
	{Name: "ssl.key.password", Type: Password, Static: true, Scope: Listener, Doc: "The password of the private key; that of the key store, if not set."},
	{Name: "ssl.truststore.type", Type: String, Default: "PEM", OneOf: storeTypes, Static: true, Scope: Listener, Doc: "The form of the trust store. The file itself tells which of these it is."},
	{Name: "ssl.truststore.location", Type: String, Static: true, Scope: Listener, Doc: "A file, PEM, PKCS12 or JKS, with the certificates by which clients are known where ssl.client.auth asks for theirs, and that this broker trusts when it talks to another by TLS, besides those of the system and of its own key store. It is read again when it changes."},
	{Name: "ssl.truststore.password", Type: Password, Static: true, Scope: Listener, Doc: "The password of the trust store, if that is PKCS12 or JKS."},
	{Name: "ssl.enabled.protocols", Type: List, Default: "TLSv1.2,TLSv1.3", Static: true, Scope: Listener, Doc: "The versions of TLS that are served: TLSv1.2 and TLSv1.3. Older ones are not supported."},
	{Name: "ssl.protocol", Type: String, Default: "TLSv1.3", Static: true, Scope: Listener, Doc: "The newest version of TLS that is served; TLS for any."},
	{Name: "ssl.cipher.suites", Type: List, Static: true, Scope: Listener, Doc: "The cipher suites that are served, by their IANA names; the safe ones if not set. Those of TLS 1.3 are all served or none."},
	{Name: "muster.ssl.crl.location", Type: String, Static: true, Scope: Listener, Doc: "A file with lists of revoked certificates (CRLs), in PEM or one in DER: a client whose certificate, or whose issuer's, is on the list of its issuer is rejected. It is read again when it changes."},
	{Name: "ssl.client.auth", Type: String, Default: "none", OneOf: []string{"none", "requested", "required"}, Static: true, Scope: Listener, Doc: "Whether clients show a certificate on listeners with SSL or SASL_SSL. With SSL it says who they are."},
	{Name: "ssl.principal.mapping.rules", Type: String, Default: "DEFAULT", Static: true, Scope: Listener, Doc: "How the name of a client's certificate becomes that of a user: rules between commas, of which the first that matches decides."},

	{Name: "muster.bootstrap.user", Type: Password, Static: true, Doc: "The first user, name:password, who may do everything. It is made when the broker starts and there are no users."},
	{Name: "authorizer.class.name", Type: Class, OneOf: authorizers, Static: true, Doc: "If set, rules (ACLs) decide who may do what. Kafka's own names are accepted, and muster."},
	{Name: "super.users", Type: String, Static: true, Doc: "Who may do everything, whatever the rules say: principals like User:admin, between semicolons."},
	{Name: "allow.everyone.if.no.acl.found", Type: Boolean, Default: "false", Static: true, Doc: "Whether everyone may do everything with what no rule is about."},

	{Name: "quota.window.num", Type: Int, Default: "11", Min: 1, Max: 1 << 20, Static: true, Doc: "How many windows of quota.window.size.seconds count for the quotas of bytes."},
	{Name: "quota.window.size.seconds", Type: Int, Default: "1", Min: 1, Max: 1 << 20, Static: true, Doc: "How long such a window is."},
	{Name: "controller.quota.window.num", Type: Int, Default: "11", Min: 1, Max: 1 << 20, Static: true, Doc: "How many windows of controller.quota.window.size.seconds count for the quota of changes to topics."},
	{Name: "controller.quota.window.size.seconds", Type: Int, Default: "1", Min: 1, Max: 1 << 20, Static: true, Doc: "How long such a window is."},
	{Name: "max.connection.creation.rate", Type: Int, Default: "2147483647", Min: 1, Max: 1<<31 - 1, Doc: "The most connections that are accepted in a second."},
	{Name: "max.connections.per.ip.overrides", Type: String, Doc: "max.connections.per.ip for some addresses: address:count, comma-separated."},
}
