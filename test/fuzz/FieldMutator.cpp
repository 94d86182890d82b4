// SPDX-License-Identifier: Apache-2.0
// Any field of any message, see ModelMutator.h: set, cleared, repeated, removed, swapped, or taken from a message of
// the same type.
#include "test/fuzz/ModelMutator.h"

#include "google/protobuf/descriptor.h"

#include <memory>

namespace sluice::fuzz {

using namespace google::protobuf;

namespace {

constexpr size_t mostMessages = 20'000;

/// All messages of a tree; deep ones too, as deep as the parser lets them be.
void collect(Message *message, std::vector<Message *> &into) {
  if (into.size() >= mostMessages)
    return;
  into.push_back(message);
  const Reflection *reflection = message->GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor *field : fields)
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated())
        collect(reflection->MutableMessage(message, field), into);
      else
        for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
          collect(reflection->MutableRepeatedMessage(message, field, i), into);
    }
}

class FieldMutator {
public:
  FieldMutator(Message &root, const Message &other, Random &random) : random(random), foreign(other.New()) {
    foreign->CopyFrom(other);
    collect(&root, own);
    collect(foreign.get(), others);
  }

  void change() {
    Message *message = random.pick(own);
    const Descriptor *type = message->GetDescriptor();
    if (type->field_count() == 0)
      return;
    // Fields that are there are worth more than those that are not.
    std::vector<const FieldDescriptor *> present;
    message->GetReflection()->ListFields(*message, &present);
    const FieldDescriptor *field = present.empty() || random.oneIn(3)
                                       ? type->field(static_cast<int>(random.below(type->field_count())))
                                       : random.pick(present);
    field->is_repeated() ? changeRepeated(*message, field) : changeSingle(*message, field);
  }

private:
  void changeSingle(Message &message, const FieldDescriptor *field) {
    const Reflection *r = message.GetReflection();
    if (random.oneIn(5))
      return r->ClearField(&message, field);
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (auto part = partOf(field->message_type()))
        r->MutableMessage(&message, field)->CopyFrom(*part);
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      return r->SetInt64(&message, field, number(r->GetInt64(message, field)));
    case FieldDescriptor::CPPTYPE_INT32:
      return r->SetInt32(&message, field, static_cast<int32_t>(number(r->GetInt32(message, field))));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r->SetFloat(&message, field, static_cast<float>(random.number()));
    case FieldDescriptor::CPPTYPE_STRING:
      return r->SetString(&message, field, word(r->GetString(message, field)));
    case FieldDescriptor::CPPTYPE_ENUM:
      return r->SetEnumValue(&message, field, static_cast<int>(random.below(24)));
    default:
      return;
    }
  }

  void changeRepeated(Message &message, const FieldDescriptor *field) {
    const Reflection *r = message.GetReflection();
    const int size = r->FieldSize(message, field);
    const int at = static_cast<int>(random.below(size));
    if (size > 0 && random.oneIn(4))
      return r->RemoveLast(&message, field);
    if (size > 1 && random.oneIn(4))
      return r->SwapElements(&message, field, at, size - 1);
    const bool add = size == 0 || random.oneIn(3);
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (auto part = partOf(field->message_type()))
        (add ? r->AddMessage(&message, field) : r->MutableRepeatedMessage(&message, field, at))->CopyFrom(*part);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64:
      return add ? r->AddInt64(&message, field, random.number())
                 : r->SetRepeatedInt64(&message, field, at, number(r->GetRepeatedInt64(message, field, at)));
    case FieldDescriptor::CPPTYPE_INT32:
      return add ? r->AddInt32(&message, field, static_cast<int32_t>(random.number()))
                 : r->SetRepeatedInt32(&message, field, at, static_cast<int32_t>(random.number()));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return add ? r->AddFloat(&message, field, static_cast<float>(random.number()))
                 : r->SetRepeatedFloat(&message, field, at, static_cast<float>(random.number()));
    case FieldDescriptor::CPPTYPE_STRING:
      return add ? r->AddString(&message, field, word(""))
                 : r->SetRepeatedString(&message, field, at, word(r->GetRepeatedString(message, field, at)));
    default:
      return;
    }
  }

  /// A copy of some message of that type, or null where none was found. It is made before anything is changed: to set
  /// one member of a oneof ends the others.
  std::unique_ptr<Message> partOf(const Descriptor *type) {
    for (int attempts = 0; attempts < 40; ++attempts)
      if (const Message *found = random.pick(random.oneIn(2) ? own : others);
          found->GetDescriptor() == type && found->ByteSizeLong() < 1 << 16) {
        std::unique_ptr<Message> copy(found->New());
        copy->CopyFrom(*found);
        return copy;
      }
    return nullptr;
  }

  int64_t number(int64_t old) {
    return random.oneIn(3) ? random.number() : static_cast<int64_t>(static_cast<uint64_t>(old) + random.below(5) - 2);
  }

  std::string word(const std::string &old) {
    if (random.oneIn(2))
      return mutateText(old, "", random);
    for (int attempts = 0; attempts < 20; ++attempts) { // a word from elsewhere
      const Message *message = random.pick(own);
      std::vector<const FieldDescriptor *> fields;
      message->GetReflection()->ListFields(*message, &fields);
      for (const FieldDescriptor *field : fields)
        if (field->type() == FieldDescriptor::TYPE_STRING && !field->is_repeated() && random.oneIn(2))
          return message->GetReflection()->GetString(*message, field);
    }
    return old + old;
  }

  Random &random;
  std::unique_ptr<Message> foreign;
  std::vector<Message *> own, others;
};

} // namespace

void mutateAnyField(Message &root, const Message &other, Random &random) { FieldMutator(root, other, random).change(); }

} // namespace sluice::fuzz
