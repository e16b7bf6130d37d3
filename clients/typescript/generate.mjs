// Writes the types of one contract: node generate.mjs ../../api/openapi.yaml src/contract/delivery.ts
// go test ./clients/typescript -update runs it for every contract.
import { writeFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'

const [contract, out] = process.argv.slice(2)

// Numbers that a sender may choose, up to 2^64. All others count something, and stay below 2^53.
const chosen = new Set(['nonce', 'nonces', 'currentNonce', 'waitingForNonce', 'gas'])
const large = ts.factory.createUnionTypeNode([
  ts.factory.createKeywordTypeNode(ts.SyntaxKind.NumberKeyword),
  ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword),
])
const hex = ts.factory.createTemplateLiteralType(ts.factory.createTemplateHead('0x'), [
  ts.factory.createTemplateLiteralTypeSpan(ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword), ts.factory.createTemplateTail('')),
])

const isInteger = (schema) => schema?.type === 'integer' || /\/Uint64$/.test(schema?.$ref ?? '')

/** A schema's type with bigint, or undefined if the schema is not an integer or made of integers. */
function widened(schema) {
  if (isInteger(schema)) return large
  if (schema?.type === 'array' && isInteger(schema.items)) return ts.factory.createArrayTypeNode(ts.factory.createParenthesizedType(large))
  if (schema?.oneOf?.some(isInteger) && schema.oneOf.some((s) => s.type === 'null')) {
    return ts.factory.createUnionTypeNode([large, ts.factory.createLiteralTypeNode(ts.factory.createNull())])
  }
  return undefined
}

const ast = await openapiTS(new URL(pathToFileURL(contract)), {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  transform: (schema) => (schema.type === 'string' && /^\^0x/.test(schema.pattern ?? '') ? hex : undefined),
  transformProperty(property, schema, { path }) {
    const type = chosen.has(path.split('/').at(-1)) ? widened(schema) : undefined
    return type && ts.factory.updatePropertySignature(property, property.modifiers, property.name, property.questionToken, type)
  },
})
const name = contract.split('/').slice(contract.split('/').lastIndexOf('api')).join('/')
await writeFile(out, `// Made from ${name} by go test ./clients/typescript -update. Do not edit.\n\n${astToString(ast)}`)
